package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// write writes results.md and the charts it shows, and looks whether they are there.
func write(s settings, o *others, all []*result, v *verdicts) error {
	charts, err := drawAll(s.out, s, all)
	if err != nil {
		return err
	}
	p := new(page)
	p.head(s, o, all)
	p.verdicts(v)
	p.charts(charts)
	p.speeds(all)
	p.crowds(all)
	p.held(all)
	p.reaped(all)
	p.allocations(all)
	p.line("%s", strings.TrimSpace(notes))
	if err := os.WriteFile(filepath.Join(s.out, "results.md"), []byte(p.String()), 0o644); err != nil {
		return err
	}
	return there(s.out, append(chartFiles(charts), "results.md"))
}

func there(folder string, files []string) error {
	for _, name := range files {
		if about, err := os.Stat(filepath.Join(folder, name)); err != nil || about.Size() < 500 {
			return fmt.Errorf("%s was not written: %w", name, err)
		}
	}
	return nil
}

func (p *page) head(s settings, o *others, all []*result) {
	p.say("# rowlock against the others")
	p.say("Written by `make bench` (`bench/against`) on %s. A pair is a lock and an unlock of one key.", time.Now().Format("2 January 2006"))
	if s.short {
		p.say("**This was `-short`: it shows that everything runs. The figures mean nothing.**")
	}
	p.say("A round gives every contender a turn of %s, in an order that changes; there were %d rounds. A ratio is always of the same round, so that "+
		"what else the machine did slowed both. Figures are medians, with the least and the most in brackets.", s.turn, s.rounds)
	p.line("- machine: %s", strings.Join(machine(), "; "))
	p.line("- servers: all on that machine, each with its data on the same disk")
	for _, r := range all {
		p.line("- %s: %s", r.kind.Name, strings.Join(r.facts, "; "))
	}
	for _, fact := range o.facts {
		p.line("- %s", fact)
	}
	p.line("- libraries: %s", strings.Join(versions(), ", "))
	for _, why := range o.absent {
		p.line("- left out: %s", why)
	}
	p.line("")
	p.say("Everybody who writes to a disk at all does so before he answers, as the settings above say; `redis as it comes` does not, nor do the " +
		"servers' own locks, which are kept in memory alone.")
}

func (p *page) verdicts(v *verdicts) {
	p.say("## Targets")
	var rows [][]string
	for _, row := range v.rows {
		rows = append(rows, []string{row.what, row.found, row.target, row.mark})
	}
	p.table("what|found|target|", rows)
}

func (p *page) charts(charts []chart) {
	for _, c := range charts {
		p.say("![%s](%s)", c.title, c.file)
	}
}

// speeds are the tables of the workloads that are turns.
func (p *page) speeds(all []*result) {
	const neighbours = " Redis and etcd had their turns in the rounds of the database under whose name they stand, and their ratios are to its raw statements."
	for _, w := range []struct {
		title, about string
		entries      func(*result) []*entry
	}{
		{
			"Keys that nobody else wants", "Each goroutine locks its own 8 keys in turn, or a new key each time where it says one-shot. The ratio of one goroutine is to the raw " +
				"statements of one; that of more is to the raw statements with as many goroutines and connections as they are best with.",
			func(r *result) []*entry { return r.free },
		},
		{"One key that all want", "Everybody locks the same key, does nothing with it and unlocks it.", func(r *result) []*entry { return r.hot }},
		{
			"1,000 keys, of which most want the same few", "Four picks of five are of a fifth of the keys.",
			func(r *result) []*entry { return r.skewed },
		},
	} {
		if !slices.ContainsFunc(all, func(r *result) bool { return w.entries(r) != nil }) {
			continue
		}
		p.say("## %s", w.title)
		p.say("%s", w.about+neighbours)
		for _, r := range all {
			p.speed(r.kind.Name, w.entries(r))
		}
	}
}

func (p *page) speed(database string, entries []*entry) {
	if entries == nil {
		return
	}
	p.say("### %s", title(database))
	var rows [][]string
	for _, e := range entries {
		row := []string{e.label(database), e.pool, fmt.Sprint(e.goroutines)}
		if e.err != nil {
			rows = append(rows, append(row, "failed: "+e.err.Error(), "", "", "", ""))
			continue
		}
		rows = append(rows, append(row, spread(e.rates), spread(e.ratios), number(ms(e.latency, 50)), number(ms(e.latency, 99)), number(ms(e.latency, 99.9))))
	}
	p.table("|connections|goroutines|pairs/s|ratio|p50 ms|p99 ms|p99.9 ms", rows)
}

// label names a contender in the table of a database.
func (c *contender) label(database string) string {
	switch c.system {
	case database, "etcd":
		return c.name
	case "redis":
		return c.name + ", durable"
	}
	return c.name + ", not durable"
}

var titles = map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL", "mariadb": "MariaDB", "mysql": "MySQL", "redis": "Redis"}

func title(system string) string {
	if t, ok := titles[system]; ok {
		return t
	}
	return system
}

func (p *page) crowds(all []*result) {
	var rows [][]string
	waiters := 0
	for _, r := range all {
		for _, c := range r.crowds {
			waiters = c.waiters
			row := []string{c.name, title(c.system), grouped(c.done), fmt.Sprintf("%.2f", c.took.Seconds()), "not counted", ""}
			if c.statements > 0 {
				row[4] = number(c.statements)
			}
			if c.err != nil {
				row[5] = c.err.Error()
			}
			rows = append(rows, row)
		}
	}
	if rows == nil {
		return
	}
	p.say("## %s waiters for one key", grouped(int64(waiters)))
	p.say("One holds the key until all wait for it; then each has it once, does nothing with it and gives it up. The time is until the last has done so, "+
		"and nobody is waited for longer than %s.", patience)
	p.table("|in|served|seconds|statements for each|", rows)
}

func (p *page) held(all []*result) {
	var rows [][]string
	for _, r := range all {
		if h := r.held; h != nil {
			rows = append(rows, []string{
				title(r.kind.Name), grouped(int64(h.Locks)), number(h.Bytes), fmt.Sprint(h.Goroutines), number(h.Renewals), number(h.PerRenewal), fmt.Sprint(h.Lost),
			})
		}
	}
	if rows == nil {
		return
	}
	p.say("## Many locks held at once")
	p.say("One client holds them and renews them every third of their TTL.")
	p.table("|locks|bytes of heap for each|goroutines added|renewal statements in TTL/3|leases each|lost", rows)
}

func (p *page) reaped(all []*result) {
	for _, r := range all {
		d := r.reaped
		if d == nil {
			continue
		}
		p.say("## The reaper at work")
		p.say("%s: of %s dead rows the reaper removed %s in the %.1f s that it was let. Meanwhile %d goroutines locked keys of their own, by turns with the reaper "+
			"at rest.", title(r.kind.Name), grouped(d.rows), grouped(d.removed), d.took.Seconds(), reapingBeside)
		p.table("p99 ms, reaper at rest|p99 ms, reaper at work|ratio", [][]string{{spread(d.quiet), spread(d.busy), rig.SpreadOf(d.ratios).String()}})
	}
}

func (p *page) allocations(all []*result) {
	var rows [][]string
	for _, r := range all {
		if r.allocs == nil {
			continue
		}
		floor := r.allocs[nameRaw]
		for _, name := range []string{nameUpdate, nameOneShot} {
			a, above := r.allocs[name], r.allocs[name].Minus(floor)
			rows = append(rows, []string{
				title(r.kind.Name), name, number(floor.Objects), number(a.Objects), number(above.Objects), number(floor.Bytes), number(a.Bytes), number(above.Bytes),
			})
		}
	}
	if rows == nil {
		return
	}
	p.say("## Allocations of one pair")
	p.say("In the whole process, with one goroutine.")
	p.table("||objects, raw|objects, ours|beyond|bytes, raw|bytes, ours|beyond", rows)
}
