package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// page is what users read.
type page struct {
	paper.Page
	s   settings
	all *figures
}

// publish writes the page and its pictures.
func publish(s settings, all *figures) error {
	if err := draw(filepath.Join(s.out, folder), all); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.out, "growth.md"), []byte(pageOf(s, all)), 0o644)
}

func pageOf(s settings, all *figures) string {
	p := &page{s: s, all: all}
	p.begin()
	p.keys()
	p.processes()
	p.held()
	p.beyond()
	p.end()
	return strings.TrimSpace(p.String()) + "\n"
}

// order is that of the databases in all tables.
var order = []string{"sqlite", "postgres", "mariadb", "mysql"}

// each calls f for the runs of a scene that found something.
func (all Scenes) each(f func(database string, r *Run)) {
	for _, database := range order {
		if r := all[database]; r != nil {
			f(paper.Title(database), r)
		}
	}
}

func (p *page) begin() {
	p.Say("# How it grows")
	p.Say("What becomes of a lock when tables grow to ten million keys, a fleet to 64 processes, and what one process holds to a " +
		"million locks; and, on paper, what comes first beyond that.")
	p.Say("Made by `make bench-growth`. **Compare the ratios, not the absolute figures.** One machine of few cores runs the servers " +
		"and the clients, and may run more. Sizes take turns in each round. A ratio is of one round; the tables have the median of " +
		"all rounds, with the least and the most. The machine's load stands at the end of the page. Where it is far above the number of " +
		"cores, least and most lie far apart: such rows say that something does not grow by much, and no more.")
	if p.s.short {
		p.Say("**This was `-short`: it shows that everything runs. The figures mean nothing.**")
	}
}

// scene is a title with its picture, and what failed.
func (p *page) scene(title string, c paper.Chart, scenes Scenes, about string) {
	p.Say("## %s", title)
	p.Say("%s", about)
	p.Say("![%s](%s/%s)", c.Title, folder, c.File)
	scenes.each(func(database string, r *Run) {
		if r.Failed != "" {
			p.Say("**%s failed: %s**", database, r.Failed)
		}
	})
}

func (p *page) keys() {
	if len(p.all.Keys) == 0 {
		return
	}
	p.scene("Keys", pictureOfKeys, p.all.Keys, "A table is filled with rows as an Unlock leaves them, in the order of their keys. "+
		"Callers lock and unlock keys that are far apart in the table, so that the larger ones do not fit into what the server "+
		"keeps in memory by default. A key that is there keeps its row; a new one makes a row between two others.")
	for _, one := range []struct {
		title string
		of    func(*Table) []Times
	}{
		{"Lock and unlock of keys that are there", func(t *Table) []Times { return t.Existing }},
		{"Lock and unlock of new keys", func(t *Table) []Times { return t.New }},
	} {
		var head string
		var rows [][]string
		p.all.Keys.each(func(database string, r *Run) {
			if r.Keys != nil {
				head = headOfPairs(r.Keys.Callers)
				rows = append(rows, pairs(database, r.Keys, one.of)...)
			}
		})
		p.Say("%s:", one.title)
		p.Table(head, rows)
	}
	p.disk()
}

func headOfPairs(callers []int) string {
	head := "|rows"
	for _, n := range callers {
		head += fmt.Sprintf("|ms, %s|ratio (min–max)", strings.Replace(fmt.Sprintf("%d callers", n), "1 callers", "1 caller", 1))
	}
	return head
}

// pairs are the rows of a database: a time and a ratio for each number of callers.
func pairs(database string, k *Keys, of func(*Table) []Times) (rows [][]string) {
	for i, t := range k.Tables {
		row := []string{database, paper.Grouped(int64(t.Rows))}
		for j := range of(t) {
			times, to := of(t)[j].Pairs, of(k.Tables[0])[j].Pairs
			row = append(row, paper.Number(rig.Median(times)), ratio(i, times, to))
		}
		rows = append(rows, row)
	}
	return rows
}

// ratio is of one round. The first is 1, because it is compared with itself.
func ratio(i int, of, to []float64) string {
	if i == 0 {
		return "1"
	}
	return rig.SpreadOf(ratios(of, to)).String()
}

func ratios(of, to []float64) []float64 {
	all := make([]float64, min(len(of), len(to)))
	for round := range all {
		all[round] = of[round] / to[round]
	}
	return all
}

// disk has what a row costs where it lies, and what it costs the reaper.
func (p *page) disk() {
	p.Say("What a key costs on disk, and each row a sweep of the reaper. A sweep reads every row, and removes the dead ones, by their " +
		"256 buckets and at most 200 in a transaction, with a pause of 5 ms after it. Removing was measured of small tables alone, " +
		"after all turns, when every row was dead. The smallest has only few rows for each bucket, and so for each transaction.")
	var rows [][]string
	p.all.Keys.each(func(database string, r *Run) {
		if r.Keys == nil {
			return
		}
		for _, t := range r.Keys.Tables {
			rows = append(rows, []string{
				database, paper.Grouped(int64(t.Rows)), each(float64(t.Bytes), t.Rows), each(float64(t.Index), t.Rows),
				each(t.Walk.Seconds*1e6, t.Rows), each(float64(t.Walk.Statements), t.Rows/1000),
				each(t.Reap.Seconds*1e6, int(t.Reap.Removed)), each(float64(t.Reap.Statements), int(t.Reap.Removed)),
			})
		}
	})
	p.Table("|rows|table, bytes a key|its index, bytes a key|sweep, µs a row|statements a thousand rows|removing, µs a row|statements a row", rows)
}

// each is a sum for each of n, or nothing where it is not known.
func each(sum float64, n int) string {
	if n == 0 || sum == 0 {
		return ""
	}
	return paper.Number(sum / float64(n))
}

func (p *page) processes() {
	if len(p.all.Processes) == 0 {
		return
	}
	p.scene("Processes", pictureOfProcesses, p.all.Processes, "Each process has one caller with default settings, and they all lock and "+
		"unlock without a rest: first each its own 8 keys, then all the same 2 keys. The clients' processes share the machine's cores "+
		"with the server, so that many of them show how little they disturb one another, and not how fast a server is.")
	var rows [][]string
	p.all.Processes.each(func(database string, r *Run) {
		if r.Processes == nil {
			return
		}
		first := r.Processes.Crowds[0]
		for i, c := range r.Processes.Crowds {
			if len(c.Own.Pairs) > 0 && len(c.Shared.Pairs) > 0 {
				rows = append(rows, c.row(i, database, first))
			}
		}
	})
	p.Table("|processes|own keys, pairs/s|ratio (min–max)|statements/s|connections|2 keys, pairs/s|ratio (min–max)|statements/s|"+
		"connections|server's MB", rows)
}

func (c *Crowd) row(i int, database string, first *Crowd) []string {
	row := []string{database, paper.Grouped(int64(c.Processes))}
	for _, one := range []struct{ of, to Load }{{c.Own, first.Own}, {c.Shared, first.Shared}} {
		row = append(row, paper.Number(rig.Median(one.of.Pairs)), ratio(i, one.of.Pairs, one.to.Pairs),
			paper.Number(rig.Median(one.of.Statements)), paper.Number(rig.Median(one.of.Connections)))
	}
	memory := ""
	if most := slices.Concat(c.Own.Memory, c.Shared.Memory); len(most) > 0 {
		memory = paper.Number(slices.Max(most) / 1e6)
	}
	return append(row, memory)
}

func (p *page) held() {
	if len(p.all.Held) == 0 {
		return
	}
	p.scene("Held locks", pictureOfHeld, p.all.Held, "One process holds locks with a TTL of 30 s, the default, and renews them every third of "+
		"that, 500 leases in a statement. 256 goroutines take them, and give them back in the end, as fast as it goes: renewals must get "+
		"through beside that. In between two periods are watched. More than about 500 locks for each statement are a sign that renewals do "+
		"not keep up. A lock that was not renewed in time is lost, and the run fails. What has no row was not run.")
	var rows [][]string
	p.all.Held.each(func(database string, r *Run) {
		if r.Held == nil {
			return
		}
		for _, h := range r.Held.Crowds {
			rows = append(rows, []string{
				database, paper.Grouped(int64(h.Locks)), paper.Number(h.Bytes), paper.Number(h.Statements), paper.Number(h.PerStatement),
				paper.Number(h.Taken), percent(h.Client), percent(h.Server), h.lost(),
			})
		}
	})
	p.Table("|locks|heap bytes a lock|statements a second|locks for each|seconds to take them|client's % of a core|server's % of a core|lost", rows)
}

// lost says when locks were lost, if some were.
func (h Holding) lost() string {
	if h.Lost == 0 {
		return "0"
	}
	n := func(n int) string { return paper.Grouped(int64(n)) }
	return fmt.Sprintf("%s: %s while all were taken, %s while they were held, %s while they were given back",
		n(h.Lost), n(h.Taking), n(h.Holding-h.Taking), n(h.Lost-h.Holding))
}

func percent(share float64) string {
	if share == 0 {
		return ""
	}
	return paper.Number(100 * share)
}

func (p *page) end() {
	p.Say("## How it was measured")
	for _, scene := range []struct {
		name string
		runs Scenes
	}{{"keys", p.all.Keys}, {"processes", p.all.Processes}, {"held locks", p.all.Held}} {
		scene.runs.each(func(database string, r *Run) {
			p.Item("%s, %s: on %s, of commit `%s`%s; load of the machine when it began, what ran before it included: %s", scene.name, database,
				r.On, r.Commit, r.turns(), r.Load)
		})
	}
	p.machine()
}

func (r *Run) turns() string {
	switch {
	case r.Keys != nil:
		return fmt.Sprintf(", %d rounds of %s", r.Keys.Rounds, r.Keys.Turn)
	case r.Processes != nil:
		return fmt.Sprintf(", %d rounds of %s", r.Processes.Rounds, r.Processes.Turn)
	}
	return ""
}

// machine says each of its facts once.
func (p *page) machine() {
	said := make(map[string]bool)
	say := func(what string, facts []string) {
		if text := strings.Join(facts, "; "); !said[what+text] {
			said[what+text] = true
			p.Item("%s: %s", what, text)
		}
	}
	for _, runs := range []Scenes{p.all.Keys, p.all.Processes, p.all.Held} {
		runs.each(func(_ string, r *Run) { say("machine", r.Machine) })
	}
	for _, runs := range []Scenes{p.all.Keys, p.all.Processes, p.all.Held} {
		runs.each(func(database string, r *Run) { say(database, r.Facts) })
	}
	p.Line("")
}
