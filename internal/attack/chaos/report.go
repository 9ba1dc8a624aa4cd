//go:build linux

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/attack/check"
)

// write writes the page, and beside it what the page is made of.
func (d *data) write(page string) error {
	text, err := d.json()
	if err == nil {
		err = os.WriteFile(strings.TrimSuffix(page, ".md")+".json", text, 0o644)
	}
	if err == nil {
		err = os.WriteFile(page, []byte(d.markdown()), 0o644)
	}
	return err
}

// markdown is the page.
func (d *data) markdown() string {
	var b strings.Builder
	b.WriteString(reportHead)
	d.inShort(&b)
	d.faults(&b)
	d.failovers(&b)
	d.worst(&b)
	b.WriteString(checked)
	d.run(&b)
	d.again(&b)
	return b.String()
}

func (d *data) inShort(b *strings.Builder) {
	var all result
	for _, r := range d.Faults {
		all.add(&r)
	}
	fmt.Fprintf(b, "\n**In this run**: %d rounds, %d locks granted, %d fenced writes committed. Violations: %s.\n",
		all.Rounds, all.Grants, all.Writes, kinds(all.Violations))
}

// add is for sums over databases or over all.
func (r *result) add(other *result) {
	r.Rounds += other.Rounds
	r.Struck += other.Struck
	r.Grants += other.Grants
	r.Writes += other.Writes
	r.Expired += other.Expired
	for kind, n := range other.Violations {
		if r.Violations == nil {
			r.Violations = make(map[check.Kind]int)
		}
		r.Violations[kind] += n
	}
}

// by returns what the results have in common in the order of their first, each with its results.
func (d *data) by(name func(*result) string) (names []string, of map[string][]*result) {
	of = make(map[string][]*result)
	for i := range d.Faults {
		n := name(&d.Faults[i])
		if of[n] == nil {
			names = append(names, n)
		}
		of[n] = append(of[n], &d.Faults[i])
	}
	return names, of
}

func database(r *result) string { return r.Database }
func faultOf(r *result) string  { return r.Fault }

// faults has a line for each fault.
func (d *data) faults(b *strings.Builder) {
	b.WriteString(faultsHead)
	databases, _ := d.by(database)
	names, of := d.by(faultOf)
	var gaps []string
	for _, name := range names {
		var all result
		var on []string
		for _, r := range of[name] {
			if r.Rounds > 0 {
				on = append(on, r.Database)
			}
			all.add(r)
			gaps = append(gaps, r.gaps()...)
		}
		if len(on) == len(databases) {
			on = []string{"all"}
		}
		if len(on) > 0 {
			fmt.Fprintf(b, "| %s | %s | %d | %d | %d | %d | %s |\n", name, strings.Join(on, ", "), all.Rounds, all.Struck,
				all.Grants, all.Writes, kinds(all.Violations))
		}
	}
	if len(gaps) > 0 {
		fmt.Fprintf(b, "\nMissing:\n\n- %s\n", strings.Join(gaps, "\n- "))
	}
}

// gaps are what the table does not show of a fault on a database.
func (r *result) gaps() (list []string) {
	if r.NotTested != "" {
		list = append(list, fmt.Sprintf("%s on %s: **not tested**: %s", r.Fault, r.Database, r.NotTested))
	}
	if r.Unfinished > 0 {
		list = append(list, fmt.Sprintf("%s on %s: **not run to the end**: %d", r.Fault, r.Database, r.Unfinished))
	}
	return list
}

// failovers has a line for each database.
func (d *data) failovers(b *strings.Builder) {
	var lines []string
	databases, of := d.by(database)
	for _, name := range databases {
		var all failed
		for _, r := range of[name] {
			if r.Failovers != nil {
				all.add(r.Failovers)
			}
		}
		if all.Number > 0 {
			lines = append(lines, fmt.Sprintf("| %s | %d | %d | %d, %d | %s | %d, %d |\n", name, all.Number, all.Lossy,
				all.Repeated, all.Fallen, all.Longest, all.Committed, all.Refused))
		}
	}
	if len(lines) > 0 {
		b.WriteString(failoversHead + strings.Join(lines, ""))
	}
}

func (f *failed) add(other *failed) {
	f.Number += other.Number
	f.Lossy += other.Lossy
	f.Repeated += other.Repeated
	f.Fallen += other.Fallen
	f.Longest = max(f.Longest, other.Longest)
	f.Committed += other.Committed
	f.Refused += other.Refused
}

// worst has a line for each database: its worst times, and under which fault they were.
func (d *data) worst(b *strings.Builder) {
	b.WriteString(worstHead)
	databases, of := d.by(database)
	for _, name := range databases {
		all := result{Overlaps: new(overlaps)}
		for _, r := range of[name] {
			all.add(r)
			if r.Overlaps != nil {
				all.Overlaps.Number += r.Overlaps.Number
			}
		}
		if all.Rounds > 0 {
			fmt.Fprintf(b, "| %s | %s | %s | %d; %s | %d |\n", name,
				longest(of[name], func(r *result) rounded { return r.NextGrant }),
				longest(of[name], func(r *result) rounded { return r.LateLoss }), all.Overlaps.Number,
				longest(of[name], worstOverlap), all.Expired)
		}
	}
}

func worstOverlap(r *result) rounded {
	if r.Overlaps == nil {
		return 0
	}
	return r.Overlaps.Worst
}

// longest names the fault under which a time was longest.
func longest(of []*result, d func(*result) rounded) string {
	r := slices.MaxFunc(of, func(a, b *result) int { return cmp.Compare(d(a), d(b)) })
	if d(r) == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (%s)", d(r), r.Fault)
}

func (d *data) run(b *strings.Builder) {
	r := d.Run
	fmt.Fprintf(b, "\n## This run\n\n- %s, rowlock %s, %s, %d cores\n", r.Began, r.Rowlock, r.Go, r.Cores)
	fmt.Fprintf(b, "- each database for at least %s, and each fault at least once\n", r.Each)
	fmt.Fprintf(b, "- %d workers of %d goroutines, rounds of %s, leases of %s\n", r.Workers, r.Goroutines, r.Round, r.Lease)
	fmt.Fprintf(b, "- %s\n\n    %s\n", strings.Join(r.Servers, "\n- "), r.Command)
}

func (d *data) again(b *strings.Builder) {
	if len(d.Again) > 0 {
		fmt.Fprintf(b, "\n## How to repeat what was found\n\n    %s\n", strings.Join(d.Again, "\n    "))
	}
}

// command is the one that runs all of it again.
func (s *settings) command() string {
	return fmt.Sprintf("make chaos FOR=%s ROUND=%s SEED=%d TIMES=%d ON=%q FAULTS=%q", s.length, s.round, s.seed, s.times,
		s.on, s.faults)
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
