package main

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/setting"
)

// question is one that a user has, and the chart that answers it, if there are figures for it.
type question struct {
	title string
	about string
	draw  func(folder string, s settings, all []*result) ([]chart, error)
}

var questions = []question{
	{
		"How many fenced sections per second?", "A section writes one row, whose key it has locked. SELECT FOR UPDATE does it " +
			"without a lock: what a section costs more is what a lock costs.", drawSections,
	},
	{
		"How many locks per second?", "Each caller locks keys of its own. A key that one caller after another wants is another " +
			"question, below.", drawThroughput,
	},
	{"How long does a lock take?", "The time of a lock and an unlock that 99 of 100 stay below.", drawLatency},
	{
		"What if many processes want one key?", "Each process locks the key, does nothing, unlocks it, and wants it again.",
		drawProcesses,
	},
	{"How long does a process wait for that key?", "The wait that 99 of 100 stay below.", drawWaits},
	{
		"Does it matter which keys?", "Recurring keys are 8 for each caller. A rarely recurring key comes again when all others of " +
			"many were locked. A new key has no row.", drawKeys,
	},
	{"What does a lock cost the server?", "Its processors' time for a lock and an unlock, with 16 callers.", drawCosts},
	{
		"What does a durable release cost?", "A durable release waits for the disk; a relaxed one does not. Grants always wait.",
		drawReleases,
	},
}

// answered is a question with its chart.
type answered struct {
	question
	charts []chart
}

func drawAll(folder string, s settings, all []*result) (out []answered, err error) {
	for _, q := range questions {
		charts, err := q.draw(folder, s, all)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.title, err)
		}
		if len(charts) > 0 {
			out = append(out, answered{q, charts})
		}
	}
	return out, nil
}

func drawThroughput(folder string, _ settings, all []*result) ([]chart, error) {
	c := chart{Title: "Lock+unlock pairs per second by callers", File: "throughput.svg"}
	return paper.DrawCurves(folder, c, "callers", "pairs per second", curvesOf(all, func(e *entry) float64 {
		return rig.Median(e.rates)
	}))
}

func drawLatency(folder string, _ settings, all []*result) ([]chart, error) {
	c := chart{Title: "Time of a lock+unlock pair (99th percentile) by callers", File: "latency.svg"}
	return paper.DrawCurves(folder, c, "callers", "milliseconds", curvesOf(all, func(e *entry) float64 {
		return ms(e.latency, 99)
	}))
}

// curvesOf are rowlock's, the raw statements' where Redis and etcd ran too, and theirs.
func curvesOf(all []*result, y func(*entry) float64) (out []curve) {
	of := func(r *result, label string, l look, wide bool, suits func(*entry) bool) {
		c := curve{Label: label, Look: l, Wide: wide}
		for _, e := range r.free {
			if suits(e) && ran(e) {
				c.Points = append(c.Points, plotter.XY{X: float64(e.goroutines), Y: y(e)})
			}
		}
		out = append(out, c)
	}
	for _, r := range all {
		of(r, "rowlock, "+paper.Title(r.kind.Name), paper.Ours[r.kind.Name], true, named(nameUpdate))
	}
	for _, r := range all {
		if r.kind.Name == "postgres" {
			of(r, "raw statements, PostgreSQL", looks[nameRaw], false, named(nameRaw))
		}
		for _, name := range []string{nameRedislock, namePipelined, nameEtcd} {
			of(r, name, looks[name], false, func(e *entry) bool { return e.name == name && e.system != redisDefault })
		}
	}
	return out
}

func drawProcesses(folder string, _ settings, all []*result) ([]chart, error) {
	c := chart{Title: "One key that many processes want: pairs per second", File: "processes.svg"}
	return paper.DrawCurves(folder, c, "processes", "pairs per second", crews(all, func(r *run) float64 { return rig.Median(r.Rates) }))
}

func drawWaits(folder string, _ settings, all []*result) ([]chart, error) {
	c := chart{Title: "One key that many processes want: wait (99th percentile)", File: "waits.svg"}
	return paper.DrawCurves(folder, c, "processes", "milliseconds", crews(all, func(r *run) float64 { return r.Wait(0.99).Seconds() * 1e3 }))
}

// crews are the curves of processes: rowlock's on each database, and the other ways where most of
// them ran.
func crews(all []*result, y func(*run) float64) (out []curve) {
	add := func(r *result, label string, l look, wide bool, pick func(*scene) *run) {
		c := curve{Label: label, Look: l, Wide: wide}
		for _, one := range r.scenes {
			run := pick(one)
			if one.own || run == nil || !run.ran() || y(run) <= 0 { // a logarithm has no 0
				continue
			}
			c.Points = append(c.Points, plotter.XY{X: float64(one.processes), Y: y(run)})
		}
		out = append(out, c)
	}
	name := func(name string) func(*scene) *run { return func(one *scene) *run { return one.of(name) } }
	for _, r := range all {
		add(r, "rowlock, "+paper.Title(r.kind.Name), paper.Ours[r.kind.Name], true, name(nameUpdate))
	}
	for _, r := range all {
		if r.kind.Name == "postgres" {
			add(r, "raw polling, PostgreSQL", looks[nameRaw], false, (*scene).floor)
		}
		for _, way := range []string{nameRedislock, nameEtcd} {
			add(r, way, looks[way], false, name(way))
		}
		add(r, wayOwn, looks[nameOwn], false, name(wayOwn))
	}
	return out
}

// bar is one of a chart with a group for each database.
func grouping(all []*result, label string, colour look, of func(*result) float64) (b bars) {
	b.Label, b.Colour = label, colour.Colour
	for _, r := range all {
		b.Values = append(b.Values, of(r))
	}
	return b
}

func groupsOf(all []*result) (groups []string) {
	for _, r := range all {
		groups = append(groups, paper.Title(r.kind.Name))
	}
	return groups
}

// rateOf is a contender's pairs per second, or 0.
func rateOf(entries []*entry, suits func(*entry) bool) float64 {
	if e := find(entries, suits); ran(e) {
		return rig.Median(e.rates)
	}
	return 0
}

func drawKeys(folder string, s settings, all []*result) ([]chart, error) {
	n := s.level(64)
	c := chart{Title: fmt.Sprintf("Kinds of keys: pairs per second of rowlock, %d callers", n), File: "keys.svg"}
	of := func(label, name string, l look) bars {
		return grouping(all, label, l, func(r *result) float64 { return rateOf(r.keys, with(name, n)) })
	}
	return paper.DrawBars(folder, c, "pairs per second", groupsOf(all), []bars{
		of("recurring", nameUpdate, paper.Ours["postgres"]), of("rarely recurring", nameRare, paper.Ours["mariadb"]),
		of("new each time", nameOneShot, paper.Ours["sqlite"]), of("1,000,000 live keys", nameMillion, looks[nameEtcd]),
	})
}

func drawCosts(folder string, s settings, all []*result) ([]chart, error) {
	served := slices.DeleteFunc(slices.Clone(all), func(r *result) bool { return r.kind.Name == "sqlite" })
	n := s.level(16)
	c := chart{Title: fmt.Sprintf("The server's processors: µs a pair, %d callers", n), File: "costs.svg"}
	of := func(name string, l look) bars {
		return grouping(served, name, l, func(r *result) float64 {
			if e := find(r.free, with(name, n)); ran(e) {
				return rig.Known(e.costs, func(c rig.Cost) float64 { return c.Server })
			}
			return 0
		})
	}
	return paper.DrawBars(folder, c, "µs", groupsOf(served), []bars{
		of(nameRaw, looks[nameOwn]), of(nameUpdate, paper.Ours["postgres"]), of(nameRelaxed, paper.Ours["mariadb"]),
	})
}

// drawReleases draws nothing without a database that has relaxed releases.
func drawReleases(folder string, _ settings, all []*result) ([]chart, error) {
	c := chart{Title: "Durable and relaxed releases: pairs per second, 1 caller", File: "releases.svg"}
	all = relaxing(all)
	of := func(label, name string, l look) bars {
		return grouping(all, label, l, func(r *result) float64 { return rateOf(r.free, with(name, 1)) })
	}
	relaxed := of("relaxed", nameRelaxed, paper.Ours["mariadb"])
	if !slices.ContainsFunc(relaxed.Values, func(v float64) bool { return v > 0 }) {
		return nil, nil
	}
	return paper.DrawBars(folder, c, "pairs per second", groupsOf(all), []bars{
		of("raw statements", nameRaw, looks[nameOwn]), of("durable", nameUpdate, paper.Ours["postgres"]), relaxed,
	})
}

func relaxing(all []*result) []*result {
	return slices.DeleteFunc(slices.Clone(all), func(r *result) bool { return !setting.CanRelax(r.kind.Name) })
}
