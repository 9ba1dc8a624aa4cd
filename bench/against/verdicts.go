package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// verdict is a target, and what was found.
type verdict struct{ what, found, target, mark string }

type verdicts struct {
	rig.Verdicts
	rows []verdict
}

// leastCrowded is what a thousand goroutines are to reach of the floor at its best, by database.
var leastCrowded = map[string]float64{"postgres": 6, "mariadb": 5, "mysql": 8, "sqlite": 3}

const (
	leastAlone     = 0.95 // of the floor, with one goroutine
	leastRedislock = 2
	leastEtcd      = 15
	leastOneShot   = 0.7
	mostBytes      = 600
	mostGoroutines = 4
	mostReaping    = 1.5
	mostAllocs     = 12
)

// judge says which targets were met. What was not run has no verdict; what has failed has missed its target.
func judge(s settings, all []*result) *verdicts {
	v := new(verdicts)
	for _, r := range all {
		v.speed(s, r)
		v.rest(r)
	}
	return v
}

func (v *verdicts) speed(s settings, r *result) {
	if r.free == nil {
		return
	}
	one := func(name string, goroutines int) *entry { return find(r.free, with(name, s.level(goroutines))) }
	crowd := s.level(1024)
	v.atLeast(leastAlone, one(nameUpdate, 1).ratiosOrNil(), "%s, 1 caller: rowlock / raw statements", r.kind.Name)
	v.atLeast(leastCrowded[r.kind.Name], one(nameUpdate, 1024).ratiosOrNil(), "%s, %d callers: rowlock / raw statements at their best", r.kind.Name, crowd)
	v.atLeast(leastOneShot, ratios(one(nameOneShot, 256), one(nameUpdate, 256)), "%s, %d callers: one-shot keys / recurring keys", r.kind.Name, s.level(256))
	if r.kind.Name != "postgres" {
		return
	}
	ours := best(r.free, named(nameUpdate))
	durable := best(r.free, func(e *entry) bool { return e.name == nameRedislock && e.system == "redis" })
	if find(r.free, named(nameRedislock)) != nil {
		v.atLeast(leastRedislock, ratios(ours, durable), "postgres, each at its best: rowlock / redislock on a durable redis")
	}
	v.atLeast(leastEtcd, ratios(ours, best(r.free, named(nameEtcd))), "postgres, each at its best: rowlock / etcd Mutex")
}

func (v *verdicts) rest(r *result) {
	if h := r.held; h != nil {
		v.atMost(mostBytes, h.Bytes, "%s, %d held locks: heap bytes per lock", r.kind.Name, h.Locks)
		v.atMost(mostGoroutines, float64(h.Goroutines), "%s, %d held locks: goroutines added", r.kind.Name, h.Locks)
		v.atMost(0, float64(h.Lost), "%s, %d held locks: lost", r.kind.Name, h.Locks)
	}
	if r.reaped != nil {
		v.atMost(mostReaping, rig.SpreadOf(r.reaped.ratios).Median, "%s, reaper at work: p99 / p99 with the reaper at rest", r.kind.Name)
	}
	if r.allocs != nil {
		v.atMost(mostAllocs, r.allocs[nameUpdate].Minus(r.allocs[nameRaw]).Objects, "%s: allocations of a pair beyond the driver's", r.kind.Name)
	}
}

func (v *verdicts) atLeast(least float64, found []float64, format string, args ...any) {
	row := verdict{what: fmt.Sprintf(format, args...), target: fmt.Sprintf("≥ %v", least), found: "failed"}
	kept := false
	if len(found) > 0 {
		spread := rig.SpreadOf(found)
		row.found, kept = spread.String(), spread.Median >= least
	}
	row.mark = v.Mark(kept)
	v.rows = append(v.rows, row)
}

func (v *verdicts) atMost(most, found float64, format string, args ...any) {
	v.rows = append(v.rows, verdict{fmt.Sprintf(format, args...), number(found), fmt.Sprintf("≤ %v", most), v.Mark(found <= most)})
}

func (v *verdicts) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range v.rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.what, row.found, row.target, row.mark)
	}
	_ = t.Flush()
}

// find is the first that suits, or nil.
func find(entries []*entry, suits func(*entry) bool) *entry {
	for _, e := range entries {
		if suits(e) {
			return e
		}
	}
	return nil
}

func (e *entry) ratiosOrNil() []float64 {
	if e == nil {
		return nil
	}
	return e.ratios
}
