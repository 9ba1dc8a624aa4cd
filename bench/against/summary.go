package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// callers are the columns of the summary.
var callers = []int{1, 16, 64, 256, 1024}

// summary begins the page with what a reader came for: each lock's throughput by the number of callers.
func (p *page) summary(s settings, all []*result) {
	p.Say("# rowlock beside the others")
	p.Say("How many locks per second, and how long one takes: rowlock on each database beside raw SQL, Redis and "+
		"etcd, all on one small machine. Compare the rows, not the absolute figures. The figures are of commit `%s`.", s.commit)
	p.Say("[What it costs](costs.md) has fenced sections, hand-overs and calls whose server is a network away.")
	if s.short {
		p.Say("**This was `-short`: it shows that everything runs. The figures mean nothing.**")
	}
	p.sections(all)
	var rows [][]string
	add := func(kind, label string, suits func(*entry) bool) {
		for _, r := range all {
			if row := throughput(s, r, suits); row != nil && (kind == "" || kind == r.kind.Name) {
				rows = append(rows, append([]string{strings.ReplaceAll(label, "DB", paper.Title(r.kind.Name))}, row...))
			}
		}
	}
	of := func(name, system string) func(*entry) bool {
		return func(e *entry) bool { return e.name == name && e.system == system }
	}
	add("", "**rowlock** on DB", named(nameUpdate))
	add("", "**rowlock** on DB, relaxed release", named(nameRelaxed))
	add("", "redislock, durable Redis", of(nameRedislock, "redis"))
	add("", "redsync, durable Redis", of(nameRedsync, "redis"))
	add("", "rueidis, durable Redis, pipelined", named(namePipelined))
	add("", nameEtcd, named(nameEtcd))
	add("", "raw SQL on DB (no lock: see below)", named(nameRaw))
	add("", "redislock, Redis with default settings (not durable)", of(nameRedislock, redisDefault))
	add("", "the server's own lock, DB (in memory)", named(nameOwn))
	if rows == nil {
		return
	}
	p.Say("Lock+unlock pairs per second, by the number of concurrent callers. Each caller locks keys of its own. " +
		"All but the rows that say otherwise write to the disk before they answer.")
	head := []string{""}
	for _, n := range levels(s) {
		head = append(head, fmt.Sprintf("%s callers", paper.Grouped(int64(n))))
	}
	p.Table(strings.Replace(strings.Join(head, "|"), "|1 callers", "|1 caller", 1), rows)
}

func levels(s settings) (out []int) {
	for _, n := range callers {
		out = append(out, s.level(n))
	}
	return slices.Compact(out)
}

// throughput is a contender's row, or nil if it did not run in r.
func throughput(s settings, r *result, suits func(*entry) bool) []string {
	var row []string
	found := false
	for _, n := range levels(s) {
		e := find(r.free, func(e *entry) bool { return suits(e) && e.goroutines == n && len(e.rates) > 0 })
		cell := ""
		if e != nil {
			cell, found = paper.Number(rig.Median(e.rates)), true
		}
		row = append(row, cell)
	}
	if !found {
		return nil
	}
	return row
}

// measured ends the page with what the figures rest on.
func (p *page) measured(s settings, o *others, all []*result) {
	p.Say("## How it was measured")
	p.Say("Written by `make bench` (`bench/against`) on %s. A pair is a lock and an unlock of one key.",
		time.Now().Format("2 January 2006"))
	p.Say("In each of %d rounds every contender runs once for %s (%s where processes contend), in an order that "+
		"changes. Figures are medians, with the minimum and the maximum in round brackets. A ratio is that of two "+
		"medians, with the interval in square brackets that holds it with 95 %%: a bootstrap that draws whole rounds, "+
		"because other load on the machine slows all turns of a round. The run took %s.",
		s.rounds, s.turn, s.contest, time.Since(s.began).Round(time.Second))
	p.Say("Processes contend for %s before a turn counts, and those of rowlock that want one key for %s: they "+
		"first hear of one another.", s.contest/2, max(s.contest/2, s.meeting))
	p.Item("machine: %s", strings.Join(paper.Machine(), "; "))
	p.Item("servers: all on that machine, each with its data on the same disk")
	for _, r := range all {
		p.Item("%s: %s", r.kind.Name, strings.Join(r.facts, "; "))
	}
	for _, fact := range o.facts {
		p.Item("%s", fact)
	}
	p.Item("libraries: %s", strings.Join(paper.Versions(), ", "))
	for _, why := range o.absent {
		p.Item("left out: %s", why)
	}
	p.Line("")
	p.Say("With these settings every contender that writes to a disk does so before it answers. `%s` does not, "+
		"and the servers' own locks are kept in memory alone.", redisDefault)
}
