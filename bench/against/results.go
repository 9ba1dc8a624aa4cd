package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
)

// write writes results.md with its charts, and targets.md, and checks that they are there.
func write(s settings, o *others, all []*result, v *verdicts) error {
	asked, err := drawAll(s.out, s, all)
	if err != nil {
		return err
	}
	p := new(page)
	p.summary(s, all)
	p.questions(asked)
	p.failures(all)
	p.details(s, o, all)
	pages := map[string]*page{"results.md": p, "targets.md": targets(v)}
	for name, page := range pages {
		text := strings.TrimSpace(page.String()) + "\n"
		if err := os.WriteFile(filepath.Join(s.out, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	files := chartFiles(asked)
	return errors.Join(there(s.out, append(files, "results.md", "targets.md")), removeOld(s.out, files))
}

func (p *page) details(s settings, o *others, all []*result) {
	p.speeds(all)
	p.scenes(all)
	p.costs(s, all)
	p.crowds(all)
	p.held(all)
	p.reaped(all)
	p.allocations(all)
	p.Line("%s\n", strings.TrimSpace(notes))
	p.measured(s, o, all)
}

func there(folder string, files []string) error {
	for _, name := range files {
		if about, err := os.Stat(filepath.Join(folder, name)); err != nil || about.Size() < 500 {
			return fmt.Errorf("%s was not written: %w", name, err)
		}
	}
	return nil
}

// removeOld removes charts that an earlier version has drawn and that results.md has no more.
func removeOld(folder string, files []string) error {
	charts, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil {
		return err
	}
	for _, file := range charts {
		if !slices.Contains(files, filepath.Base(file)) {
			err = errors.Join(err, os.Remove(file))
		}
	}
	return err
}

func (p *page) questions(asked []answered) {
	for _, q := range asked {
		p.Say("## %s", q.title)
		p.Say("%s", q.about)
		for _, c := range q.charts {
			p.Say("![%s](%s)", c.Title, c.File)
		}
	}
}

// failures say what has no result, and why.
func (p *page) failures(all []*result) {
	for _, r := range all {
		for _, f := range r.failed {
			p.Say("**%s, %s: failed: %s**", paper.Title(r.kind.Name), f.part, f.err)
		}
	}
}

// speeds are the tables of the workloads that are turns.
func (p *page) speeds(all []*result) {
	const neighbors = " Redis and etcd ran in the rounds of the database under whose name they stand; " +
		"their ratios are to its raw statements."
	for _, w := range []struct {
		title, about string
		entries      func(*result) []*entry
	}{
		{
			"Keys without contention", "Each caller locks its own 8 keys in turn. The ratio of one caller is to one caller of the raw statements; that of more callers " +
				"is to the raw statements with the number of callers and connections at which they are fastest.",
			func(r *result) []*entry { return r.free },
		},
		{
			"Kinds of keys", "A row that names no kind has 8 recurring keys for each caller. Of the rarely recurring keys " +
				"there are 100,000; each comes again when all were locked. A one-shot key has no row. The ratio is to " +
				"the raw statements on the same keys, and that of one-shot keys to those on recurring keys.",
			func(r *result) []*entry { return r.keys },
		},
		{"One key that all callers of one process want", "Each caller locks the same key, does nothing and unlocks it.", func(r *result) []*entry { return r.hot }},
		{
			"1,000 keys, a fifth of them hot", "Four of five locks are of that fifth.",
			func(r *result) []*entry { return r.skewed },
		},
	} {
		if !slices.ContainsFunc(all, func(r *result) bool { return w.entries(r) != nil }) {
			continue
		}
		p.Say("## %s", w.title)
		p.Say("%s", w.about+neighbors)
		for _, r := range all {
			p.speed(r.kind.Name, w.entries(r))
		}
	}
}

func (p *page) speed(database string, entries []*entry) {
	if entries == nil {
		return
	}
	p.Say("### %s", paper.Title(database))
	var rows [][]string
	for _, e := range entries {
		row := []string{e.label(database), e.pool, fmt.Sprint(e.goroutines)}
		if e.err != nil {
			rows = append(rows, append(row, "failed: "+e.err.Error(), "", "", "", ""))
			continue
		}
		rows = append(rows, append(row, spread(e.rates), intervalOrNone(e.ratio), paper.Number(ms(e.latency, 50)), paper.Number(ms(e.latency, 99)), paper.Number(ms(e.latency, 99.9))))
	}
	p.Table("|connections|callers|lock+unlock pairs/s|ratio [95 %]|p50 ms|p99 ms|p99.9 ms", rows)
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

func (p *page) crowds(all []*result) {
	var rows [][]string
	waiters := 0
	for _, r := range all {
		for _, c := range r.crowds {
			waiters = c.waiters
			row := []string{c.name, paper.Title(c.system), paper.Grouped(c.done), fmt.Sprintf("%.2f", c.took.Seconds()), "not counted", ""}
			if c.statements > 0 {
				row[4] = paper.Number(c.statements)
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
	p.Say("## %s waiters for one key", paper.Grouped(int64(waiters)))
	p.Say("One caller holds the key until all others wait for it. Then each holds it once, does nothing and "+
		"releases it. The time ends with the last release, or after %s.", patience)
	p.Table("|in|served|seconds|statements per waiter|", rows)
}

func (p *page) held(all []*result) {
	var rows [][]string
	for _, r := range all {
		if h := r.held; h != nil {
			rows = append(rows, []string{
				paper.Title(r.kind.Name), paper.Grouped(int64(h.Locks)), paper.Number(h.Bytes), fmt.Sprint(h.Goroutines), paper.Number(h.Renewals), paper.Number(h.PerRenewal), fmt.Sprint(h.Lost),
			})
		}
	}
	if rows == nil {
		return
	}
	p.Say("## Many locks held at once")
	p.Say("One client holds them and renews them every third of their TTL.")
	p.Table("|locks|heap bytes per lock|goroutines added|renewal statements in TTL/3|leases per statement|lost", rows)
}

func (p *page) reaped(all []*result) {
	for _, r := range all {
		d := r.reaped
		if d == nil {
			continue
		}
		p.Say("## The reaper at work")
		p.Say("%[1]s: the reaper removed %[3]s of %[2]s dead rows in %.1[4]f s. %[5]d callers locked keys of their own "+
			"meanwhile, alternating with the reaper at rest.", paper.Title(r.kind.Name), paper.Grouped(d.rows), paper.Grouped(d.removed), d.took.Seconds(), reapingBeside)
		p.Table("p99 ms, reaper at rest|p99 ms, reaper at work|ratio [95 %]", [][]string{{spread(d.quiet), spread(d.busy), interval(&d.ratio)}})
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
			a, above := r.allocs[name], r.allocs[name].Minus(floor.Allocation)
			rows = append(rows, []string{
				paper.Title(r.kind.Name), name, paper.Number(floor.Objects), paper.Number(a.Objects), paper.Number(above.Objects), paper.Number(floor.Bytes), paper.Number(a.Bytes), paper.Number(above.Bytes),
			})
		}
	}
	if rows == nil {
		return
	}
	p.Say("## Allocations per pair")
	p.Say("In the whole process, with one caller.")
	p.Table("||objects, raw|objects, rowlock|beyond|bytes, raw|bytes, rowlock|beyond", rows)
}
