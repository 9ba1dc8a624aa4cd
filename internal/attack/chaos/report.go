//go:build linux

package main

import (
	"fmt"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/proxy"
)

// markdown is the report.
func (s *summary) markdown() string {
	var b strings.Builder
	b.WriteString(reportHead)
	fmt.Fprintf(&b, "\n## This run\n\n- %[1]s, first seed %[3]d\n- each database for at least %[2]s, and each fault at least once\n",
		s.began.UTC().Format("2006-01-02 15:04 MST"), s.settings.length, s.settings.seed)
	fmt.Fprintf(&b, "- %d workers of %d goroutines, rounds of %s, leases of %s\n", s.settings.workers, goroutines(), s.settings.round, ttl)
	fmt.Fprintf(&b, "- %s\n- %d cores, %s, rowlock %s\n", strings.Join(s.versions, "\n- "), runtime.NumCPU(), runtime.Version(), s.revision)
	fmt.Fprintf(&b, "\n    make chaos FOR=%s ROUND=%s SEED=%d TIMES=%d ON=%q FAULTS=%q\n", s.settings.length, s.settings.round, s.settings.seed,
		s.settings.times, s.settings.on, s.settings.faults)
	s.results(&b)
	s.failovers(&b)
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

// revision is the checkout's. The program is built without one where GOFLAGS says so.
func revision() string {
	text, err := exec.Command("git", "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty").Output()
	if err != nil {
		return "of an unknown commit"
	}
	return strings.TrimSpace(string(text))
}

// results is a line for each fault and database.
func (s *summary) results(b *strings.Builder) {
	b.WriteString("\n## Faults and violations\n\n")
	b.WriteString(resultsHead)
	b.WriteString("| database | fault | rounds | times struck | grants | fenced writes | ErrLost | violations |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, l := range s.lines {
		if l.Skipped != "" {
			fmt.Fprintf(b, "| %s | %s | **not tested**: %s | | | | | |\n", l.Database, l.Fault, l.Skipped)
			continue
		}
		if l.Failed > 0 {
			fmt.Fprintf(b, "| %s | %s | **not run to the end: %d** | | | | | |\n", l.Database, l.Fault, l.Failed)
		}
		if l.Rounds > 0 {
			fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %d | %s |\n", l.Database, l.Fault, l.Rounds, l.Struck, l.Grants, l.Writes,
				l.Lost, kinds(l.Violations))
		}
	}
}

// times are the worst, and overlaps as a distribution.
func (s *summary) times(b *strings.Builder) {
	b.WriteString("\n## Worst times, and what is left behind\n\n")
	b.WriteString(timesHead)
	b.WriteString("| database | fault | longest wait | next grant | loss told late by | overlaps: number, median, worst | expired when granted | rows left |\n")
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

// rows are those that processes leave for the next caller of the key, or for the cleaner.
func (l *line) rows() string {
	var list []string
	for _, table := range slices.Sorted(maps.Keys(l.Rows)) {
		if n := l.Rows[table]; n > 0 && !strings.Contains(table, "floor") && !strings.Contains(table, "meta") {
			list = append(list, fmt.Sprintf("%s %d", table, n))
		}
	}
	return strings.Join(list, ", ")
}

// ways are the fates of a statement that a reader tells apart: cut before it was executed, cut
// after it, and late.
var ways = [][]proxy.Fate{{proxy.Unsent, proxy.Half}, {proxy.ReplyLost, proxy.ReplyHalf}, {proxy.Late}}

// statements has a line for each kind of statement that was cut, and how often in which way on each
// database.
func (s *summary) statements(b *strings.Builder) {
	cut := make(map[string]map[string]int) // by kind, and by database and fate
	var databases []string
	for _, l := range s.lines {
		if l.Fault != "reply" && l.Fault != "late" || l.Rounds == 0 {
			continue
		}
		if !slices.Contains(databases, l.Database) {
			databases = append(databases, l.Database)
		}
		for what, n := range l.Blows {
			kind, fate, _ := strings.Cut(what, ": ")
			if cut[kind] == nil {
				cut[kind] = make(map[string]int)
			}
			cut[kind][l.Database+fate] += n
		}
	}
	if len(cut) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## Statements cut\n\n%s| statement | %s |\n|---|%s\n", cutHead, strings.Join(databases, " | "),
		strings.Repeat("---|", len(databases)))
	for _, kind := range slices.Sorted(maps.Keys(cut)) {
		fmt.Fprintf(b, "| %s |", kind)
		for _, database := range databases {
			fmt.Fprintf(b, " %s |", counted(cut[kind], database))
		}
		b.WriteString("\n")
	}
}

// counted is a cell: a number for each way, or nothing if the database has met none.
func counted(cut map[string]int, database string) string {
	var list []string
	total := 0
	for _, fates := range ways {
		n := 0
		for _, fate := range fates {
			n += cut[database+fate.String()]
		}
		total += n
		list = append(list, strconv.Itoa(n))
	}
	if total == 0 {
		return ""
	}
	return strings.Join(list, ", ")
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
