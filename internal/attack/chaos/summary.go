//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

// summary is what all rounds have shown.
type summary struct {
	settings   settings
	began      time.Time
	revision   string // of rowlock
	versions   []string
	passes     fight.Passes
	lines      []*line
	violations int
	bad        []string // how to repeat each
	failed     []error  // rounds that could not be run
}

// line sums up one fault on one database.
type line struct {
	Database, Fault, What, Skipped              string
	Rounds, Struck, Calls, Grants, Writes, Lost int
	Unknown, Stale, Failed                      int
	Violations                                  map[check.Kind]int
	Findings                                    map[check.Kind]int
	Blows                                       map[string]int
	Overlaps                                    []time.Duration
	Wait, Recovery, LateLoss                    time.Duration
	Rows                                        map[string]int
	Failovers                                   []standing
}

func (s *summary) line(database, fault string) *line {
	for _, l := range s.lines {
		if l.Database == database && l.Fault == fault {
			return l
		}
	}
	l := &line{
		Database: database, Fault: fault, Violations: make(map[check.Kind]int), Findings: make(map[check.Kind]int),
		Blows: make(map[string]int), Rows: make(map[string]int),
	}
	for _, f := range faults() {
		if f.name == fault {
			l.What = f.what
		}
	}
	s.lines = append(s.lines, l)
	return l
}

func (s *summary) add(f *found) {
	l := s.line(f.database, f.fault)
	l.Rounds++
	l.Struck += f.struck
	l.Calls += f.totals.Calls
	l.Grants += f.totals.Grants
	l.Writes += f.totals.Writes
	l.Lost += f.totals.Lost
	l.Unknown += f.totals.Unknown
	s.passes.Add(f.totals.Passes)
	l.Stale += f.stale
	for what, n := range f.blows {
		l.Blows[what] += n
	}
	for _, c := range f.report.Violations {
		l.Violations[c.Kind]++
	}
	for _, c := range f.report.Findings {
		l.Findings[c.Kind]++
	}
	l.Overlaps = append(l.Overlaps, f.overlaps...)
	l.Failovers = append(l.Failovers, f.failovers...)
	slices.Sort(l.Overlaps)
	l.Wait, l.Recovery, l.LateLoss = max(l.Wait, f.longestWait), max(l.Recovery, f.recovery), max(l.LateLoss, f.lateLoss)
	for table, n := range f.rows {
		l.Rows[table] = max(l.Rows[table], n)
	}
	if n := len(f.report.Violations); n > 0 {
		s.violations += n
		s.bad = append(s.bad, repeat(s.settings, f))
	}
}

// repeat is the command that runs a round again, and leaves the published report alone.
func repeat(s settings, f *found) string {
	text := fmt.Sprintf("make chaos REPORT= FOR=1s ROUND=%s SEED=%d ON=%s FAULTS=%s", s.round, f.seed, f.database, f.fault)
	if s.server != "" {
		text += fmt.Sprintf(" # with -server %q", s.server)
	}
	return text
}

// examples is how many cases of a kind are printed.
const examples = 4

func (r *round) say(f *found) {
	fmt.Printf("chaos: %-40s %3d blows %5d grants %5d writes %4d lost %4d unknown; wait %s, again after %s; %d overlaps\n", r.name(), f.struck,
		f.totals.Grants, f.totals.Writes, f.totals.Lost, f.totals.Unknown, tenths(f.longestWait), tenths(f.recovery), len(f.overlaps))
	counts := make(map[check.Kind]int)
	for _, c := range f.report.Violations {
		if counts[c.Kind]++; counts[c.Kind] <= examples {
			fmt.Printf("  VIOLATION: %s: %q %s\n", c.Kind, c.Key, c.Text)
		}
	}
	for kind, n := range counts {
		fmt.Printf("  %d × %s\n", n, kind)
	}
	if len(counts) > 0 {
		fmt.Println("  again:", repeat(r.settings, f))
	}
}

func (s *summary) print() {
	fmt.Printf("\nchaos: %s\n", strings.Join(s.versions, ", "))
	fmt.Printf("%-9s %-16s %6s %6s %7s %7s %6s %8s %8s %8s %9s %s\n", "on", "fault", "rounds", "blows", "grants", "writes", "lost", "wait", "again",
		"told", "overlap", "violations")
	for _, l := range s.lines {
		if l.Skipped != "" {
			fmt.Printf("%-9s %-16s NOT TESTED: %s\n", l.Database, l.Fault, l.Skipped)
			continue
		}
		if l.Rounds == 0 {
			continue
		}
		fmt.Printf("%-9s %-16s %6d %6d %7d %7d %6d %8s %8s %8s %9s %s\n", l.Database, l.Fault, l.Rounds, l.Struck, l.Grants, l.Writes, l.Lost,
			tenths(l.Wait), tenths(l.Recovery), tenths(l.LateLoss), worst(l.Overlaps), kinds(l.Violations))
	}
	fmt.Println("chaos:", s.passes)
	for _, l := range s.lines {
		if len(l.Failovers) > 0 {
			fmt.Printf("%s %s: failovers: %s\n", l.Database, l.Fault, l.standing())
		}
	}
	for _, text := range s.bad {
		fmt.Println("again:", text)
	}
	for _, err := range s.failed {
		fmt.Println("chaos:", err)
	}
	if s.violations == 0 {
		fmt.Println("chaos: no violation")
	}
}

func worst(list []time.Duration) string {
	if len(list) == 0 {
		return "none"
	}
	return tenths(list[len(list)-1])
}

func tenths(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func kinds(counts map[check.Kind]int) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%d × %s", counts[kind], kind))
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// write leaves what was found for another program, and the report.
func (s *summary) write() error {
	if s.settings.report != "" {
		if err := s.data().write(s.settings.report); err != nil {
			return err
		}
	}
	if s.settings.out == "" {
		return nil
	}
	all := make(map[check.Kind]int)
	for _, l := range s.lines {
		for kind, n := range l.Violations {
			all[kind] += n
		}
	}
	text, err := json.MarshalIndent(map[string]any{"Violations": all, "Lines": s.lines}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(s.settings.out, append(text, '\n'), 0o644)
}
