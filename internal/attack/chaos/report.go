//go:build linux

package main

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// markdown is the report.
func (s *summary) markdown() string {
	var b strings.Builder
	b.WriteString(reportHead)
	fmt.Fprintf(&b, "\n## This run\n\n- %s, each fault once on each database and for %s at least, first seed %d\n",
		s.began.UTC().Format("2006-01-02 15:04 MST"), s.settings.length, s.settings.seed)
	fmt.Fprintf(&b, "- %d workers of %d goroutines, rounds of %s, leases of %s\n", s.settings.workers, goroutines(), s.settings.round, ttl)
	fmt.Fprintf(&b, "- %s\n- %d cores, %s, rowlock %s\n", strings.Join(s.versions, "\n- "), runtime.NumCPU(), runtime.Version(), revision())
	fmt.Fprintf(&b, "\n    make chaos FOR=%s ROUND=%s SEED=%d ON=%q FAULTS=%q\n", s.settings.length, s.settings.round, s.settings.seed, s.settings.on, s.settings.faults)
	s.results(&b)
	s.times(&b)
	s.statements(&b)
	s.again(&b)
	return b.String()
}

func goroutines() (n int) {
	for _, c := range crews {
		n += c.Goroutines
	}
	return n
}

func revision() string {
	info, _ := debug.ReadBuildInfo()
	if info == nil {
		return "of this checkout"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:12]
		}
	}
	return "of this checkout"
}

// results is a line for each fault and database.
func (s *summary) results(b *strings.Builder) {
	b.WriteString("\n## Faults, schedules, violations\n\n")
	b.WriteString("| database | fault | schedules | times struck | grants | fenced writes | locks lost, and told | violations |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, l := range s.lines {
		if l.Skipped != "" {
			fmt.Fprintf(b, "| %s | %s | **not tested**: %s | | | | | |\n", l.Database, l.Fault, l.Skipped)
			continue
		}
		if l.Failed > 0 {
			fmt.Fprintf(b, "| %s | %s | **%d schedules could not be run to their end** | | | | | |\n", l.Database, l.Fault, l.Failed)
		}
		if l.Rounds > 0 {
			fmt.Fprintf(b, "| %s | %s: %s | %d | %d | %d | %d | %d | %s |\n", l.Database, l.Fault, l.What, l.Rounds, l.Struck, l.Grants, l.Writes,
				l.Lost, kinds(l.Violations))
		}
	}
}

// times are the worst, and overlaps as a distribution.
func (s *summary) times(b *strings.Builder) {
	b.WriteString("\n## Worst times, and what is left behind\n\n")
	b.WriteString(timesHead)
	b.WriteString("| database | fault | longest wait | next grant | told late by | overlaps: number, median, worst | over when granted | rows left |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, l := range s.lines {
		if l.Rounds > 0 {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %d | %s |\n", l.Database, l.Fault, tenths(l.Wait), tenths(l.Recovery),
				tenths(l.LateLoss), l.overlaps(), l.Stale, l.rows())
		}
	}
}

func (l *line) overlaps() string {
	n := len(l.Overlaps)
	if n == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %s, %s", n, tenths(l.Overlaps[n/2].Round(time.Millisecond)), tenths(l.Overlaps[n-1]))
}

// rows are those that processes leave for the next who comes, or for the cleaner.
func (l *line) rows() string {
	var list []string
	for _, table := range slices.Sorted(maps.Keys(l.Rows)) {
		if n := l.Rows[table]; n > 0 && !strings.Contains(table, "floor") && !strings.Contains(table, "meta") {
			list = append(list, fmt.Sprintf("%s %d", table, n))
		}
	}
	return strings.Join(list, ", ")
}

// statements are those that were cut, and how often in which way.
func (s *summary) statements(b *strings.Builder) {
	cells := make(map[string]map[string]int)
	for _, l := range s.lines {
		if l.Fault != "reply" && l.Fault != "late" {
			continue
		}
		for what, n := range l.Blows {
			kind, fate, ok := strings.Cut(what, ": ")
			if !ok {
				continue
			}
			if kind = l.Database + " | " + kind; cells[kind] == nil {
				cells[kind] = make(map[string]int)
			}
			cells[kind][fate] += n
		}
	}
	if len(cells) == 0 {
		return
	}
	fates := []string{"unsent", "half sent", "reply lost", "half a reply", "late"}
	fmt.Fprintf(b, "\n## Statements cut\n\n%s| database | statement | %s |\n|---|---|%s\n", cutHead, strings.Join(fates, " | "), strings.Repeat("---|", len(fates)))
	for _, kind := range slices.Sorted(maps.Keys(cells)) {
		fmt.Fprintf(b, "| %s |", kind)
		for _, fate := range fates {
			fmt.Fprintf(b, " %d |", cells[kind][fate])
		}
		b.WriteString("\n")
	}
}

func (s *summary) again(b *strings.Builder) {
	if len(s.bad) == 0 {
		return
	}
	b.WriteString("\n## How to repeat what was found\n\n")
	for _, text := range s.bad {
		fmt.Fprintf(b, "    %s\n", text)
	}
}
