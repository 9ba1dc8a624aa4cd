package main

import (
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// scenes are the tables of processes.
func (p *page) scenes(all []*result) {
	p.scenesOf(all, false, "One key that many processes want",
		"Each process locks the key from one caller, does nothing and unlocks it. Shares are those of the processes that "+
			"had least and most, of an equal share. Raw statements poll with pauses, each half more or less. A wait "+
			"that the end of its turn cut off counts with the time that it had lasted, if that was long.")
	p.scenesOf(all, true, "Many processes with many callers", "Each caller locks its own 8 keys in turn.")
}

func (p *page) scenesOf(all []*result, own bool, title, about string) {
	var rows [][]string
	for _, r := range all {
		for _, one := range r.scenes {
			if one.own == own {
				rows = append(rows, one.rows(r)...)
			}
		}
	}
	if rows == nil {
		return
	}
	p.Say("## %s", title)
	p.Say("%s", about)
	p.Table("||processes|lock+unlock pairs/s|ratio [95 %]|wait p50 ms|p99 ms|shares", rows)
}

func (one *scene) rows(r *result) (rows [][]string) {
	processes := fmt.Sprint(one.processes)
	if one.own {
		processes += fmt.Sprintf(" × %d", one.goroutines)
	}
	for _, run := range one.runs {
		row := []string{paper.Title(r.kind.Name), run.Name, processes}
		if !run.ran() {
			why := "not run"
			if run.err != nil {
				why = "failed: " + run.err.Error()
			}
			rows = append(rows, append(row, why, "", "", "", ""))
			continue
		}
		least, most := run.Shares()
		ms := func(q float64) string { return paper.Number(run.Wait(q).Seconds() * 1e3) }
		rows = append(rows, append(row, spread(run.Rates), intervalOrNone(run.ratio), ms(0.5), ms(0.99),
			fmt.Sprintf("%.2f–%.2f", least, most)))
	}
	return rows
}

// costly are the contenders whose costs users compare.
var costly = []string{nameRaw, nameUpdate, nameRelaxed, nameRedislock, namePipelined, nameEtcd}

// costs are what a pair takes besides time.
func (p *page) costs(s settings, all []*result) {
	var rows [][]string
	for _, r := range all {
		for _, e := range r.free {
			shown := slices.Contains([]int{s.level(1), s.level(16), s.level(1024)}, e.goroutines)
			if ran(e) && shown && slices.Contains(costly, e.name) && e.system != redisDefault {
				rows = append(rows, e.costRow(r))
			}
		}
	}
	if rows == nil {
		return
	}
	p.Say("## What a pair costs")
	p.Say("On keys of each caller's own. A round trip is an answer that comes after something was sent, on any " +
		"connection; what is sent at once is one. The log is the WAL or redo log, without MySQL's binary log. " +
		"SQLite's server is the client. The client's figures include those of the program that measures.")
	p.Table("||callers|server, µs CPU|client, µs CPU|log bytes|round trips|allocations", rows)
}

func (e *entry) costRow(r *result) []string {
	cell := func(of func(rig.Cost) float64) string { return known(rig.Known(e.costs, of)) }
	return []string{
		paper.Title(r.kind.Name), e.label(r.kind.Name), paper.Grouped(int64(e.goroutines)),
		cell(func(c rig.Cost) float64 { return c.Server }), cell(func(c rig.Cost) float64 { return c.Client }),
		cell(func(c rig.Cost) float64 { return c.Log }), cell(func(c rig.Cost) float64 { return c.Trips }),
		cell(func(c rig.Cost) float64 { return c.Objects }),
	}
}
