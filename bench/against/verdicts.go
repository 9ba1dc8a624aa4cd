package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// verdict is a target, and what was found.
type verdict struct{ what, found, target, mark string }

type verdicts struct {
	rig.Verdicts
	rows []verdict
}

// leastOf is what 1, 64 and 1,024 callers are to reach of the raw statements: of one caller's, and of
// those at their best.
var leastOf = map[string]struct{ alone, some, many float64 }{
	"sqlite": {0.95, 6, 11}, "mariadb": {0.95, 2, 5}, "mysql": {0.95, 2.2, 6},
}

// leastEqual are what so many callers are to reach of as many of the raw statements, on PostgreSQL.
var leastEqual = []struct {
	callers int
	least   float64
}{{1, 0.95}, {16, 1.5}, {64, 3}, {1024, 7}}

// leastRelaxed is what one caller with relaxed releases is to reach of one of the raw statements.
var leastRelaxed = map[string]float64{"postgres": 1.1, "sqlite": 1.3}

const (
	mostLatency    = 10 // ms: p99 of 64 callers on PostgreSQL
	leastRedislock = 2
	leastPipelined = 0.75
	leastEtcd      = 15
	mostServer     = 0.4 // of the server's time that the raw statements take, 16 callers
	leastOneShot   = 0.7
	mostBytes      = 600
	mostGoroutines = 4
	mostReaping    = 1.5
	mostObjects    = 30 // of a pair on PostgreSQL, in all
	mostBeyond     = 12 // on the others: beyond the driver's
)

// judge says which targets were met. What was not asked for has no verdict; what has failed has
// missed its target.
func judge(s settings, all []*result) *verdicts {
	v := new(verdicts)
	for _, r := range all {
		v.speed(s, r)
		v.oneShot(s, r)
		v.processes(s, r)
		v.rest(s, r)
	}
	return v
}

func (v *verdicts) speed(s settings, r *result) {
	if !s.parts[onFree] {
		return
	}
	one := func(name string, callers int) *entry { return find(r.free, with(name, s.level(callers))) }
	if least, ok := leastRelaxed[r.kind.Name]; ok {
		v.relaxed(least, ratio(one(nameRelaxed, 1), one(nameRaw, 1)), r.kind.Name)
	}
	if r.kind.Name == "postgres" {
		v.postgres(s, r, one)
		return
	}
	least := leastOf[r.kind.Name]
	v.atLeast(least.alone, one(nameUpdate, 1).ratioOrNil(), "%s, 1 caller: rowlock / raw statements", r.kind.Name)
	v.atLeast(least.some, one(nameUpdate, 64).ratioOrNil(), "%s, %d callers: rowlock / raw statements at their best",
		r.kind.Name, s.level(64))
	v.atLeast(least.many, one(nameUpdate, 1024).ratioOrNil(), "%s, %d callers: rowlock / raw statements at their best",
		r.kind.Name, s.level(1024))
}

func (v *verdicts) postgres(s settings, r *result, one func(string, int) *entry) {
	for _, t := range leastEqual {
		v.atLeast(t.least, ratio(one(nameUpdate, t.callers), one(nameRaw, t.callers)),
			"postgres, callers: %d: rowlock / raw statements", s.level(t.callers))
	}
	if e := one(nameUpdate, 64); ran(e) {
		v.atMost(mostLatency, ms(e.latency, 99), "postgres, %d callers: p99 ms", e.goroutines)
	}
	v.atMostRatio(mostServer, serverRatio(one(nameUpdate, 16), one(nameRaw, 16)),
		"postgres, %d callers: the server's CPU, rowlock / raw statements", s.level(16))
	v.elsewhere(s, r, one)
}

// elsewhere compares with Redis and etcd, if they were there.
func (v *verdicts) elsewhere(s settings, r *result, one func(string, int) *entry) {
	ours := best(r.free, named(nameUpdate))
	durable := func(e *entry) bool { return e.name == nameRedislock && e.system == "redis" }
	if find(r.free, durable) != nil {
		for _, t := range []struct {
			callers int
			least   float64
		}{{16, 0.8}, {64, 1}} {
			theirs := find(r.free, func(e *entry) bool { return durable(e) && e.goroutines == s.level(t.callers) })
			v.atLeast(t.least, ratio(one(nameUpdate, t.callers), theirs),
				"postgres, %d callers: rowlock / redislock on a durable redis", s.level(t.callers))
		}
		v.atLeast(leastRedislock, ratio(ours, best(r.free, durable)),
			"postgres, each at its best: rowlock / redislock on a durable redis")
		v.atLeast(leastPipelined, ratio(ours, best(r.free, named(namePipelined))),
			"postgres, each at its best: rowlock / rueidis on a durable redis")
	}
	v.atLeast(leastEtcd, ratio(ours, best(r.free, named(nameEtcd))), "postgres, each at its best: rowlock / etcd Mutex")
}

// serverRatio is how much of the server's processors a pair of a takes, of what one of b does.
func serverRatio(a, b *entry) *rig.Interval {
	of, to := serverTimes(a), serverTimes(b)
	if len(of) == 0 || len(of) != len(to) || rig.Median(to) == 0 {
		return nil
	}
	i := rig.RatioOfMedians(of, to)
	return &i
}

func serverTimes(e *entry) (all []float64) {
	if !ran(e) {
		return nil
	}
	for _, c := range e.costs {
		if c.Server >= 0 { // or it is not known
			all = append(all, c.Server)
		}
	}
	return all
}

func (v *verdicts) oneShot(s settings, r *result) {
	if !s.parts[onKeys] {
		return
	}
	n := s.level(256)
	v.atLeast(leastOneShot, ratio(find(r.keys, with(nameOneShot, n)), find(r.keys, with(nameUpdate, n))),
		"%s, %d callers: one-shot keys / recurring keys", r.kind.Name, n)
}

func (v *verdicts) rest(s settings, r *result) {
	if h := r.held; h != nil {
		v.atMost(mostBytes, h.Bytes, "%s, %d held locks: heap bytes per lock", r.kind.Name, h.Locks)
		v.atMost(mostGoroutines, float64(h.Goroutines), "%s, %d held locks: goroutines added", r.kind.Name, h.Locks)
		v.atMost(0, float64(h.Lost), "%s, %d held locks: lost", r.kind.Name, h.Locks)
	} else if s.parts[onHeld] {
		v.row(false, "failed", "≤ 0", r.kind.Name+", held locks: lost")
	}
	if r.reaped != nil {
		v.atMostRatio(mostReaping, &r.reaped.ratio, "%s, reaper at work: p99 / p99 with the reaper at rest", r.kind.Name)
	}
	ours, floor := r.allocs[nameUpdate], r.allocs[nameRaw]
	switch {
	case r.allocs == nil:
	case r.kind.Name == "postgres":
		v.atMost(mostObjects, ours.Objects, "%s: allocations of a pair", r.kind.Name)
	default:
		v.atMost(mostBeyond, ours.Minus(floor.Allocation).Objects, "%s: allocations of a pair beyond the driver's", r.kind.Name)
	}
}

// relaxed judges relaxed releases. That there are none yet has missed their target.
func (v *verdicts) relaxed(least float64, found *rig.Interval, database string) {
	if found == nil {
		v.row(false, "there is none", fmt.Sprintf("≥ %v", least), database+", 1 caller: rowlock, relaxed release / raw statements")
		return
	}
	v.atLeast(least, found, "%s, 1 caller: rowlock, relaxed release / raw statements", database)
}

func (v *verdicts) atLeast(least float64, found *rig.Interval, format string, args ...any) {
	v.row(found != nil && found.Value >= least, interval(found), fmt.Sprintf("≥ %v", least), fmt.Sprintf(format, args...))
}

func (v *verdicts) atMostRatio(most float64, found *rig.Interval, format string, args ...any) {
	v.row(found != nil && found.Value <= most, interval(found), fmt.Sprintf("≤ %v", most), fmt.Sprintf(format, args...))
}

func (v *verdicts) atMost(most, found float64, format string, args ...any) {
	v.row(found <= most, paper.Number(found), fmt.Sprintf("≤ %v", most), fmt.Sprintf(format, args...))
}

func (v *verdicts) row(kept bool, found, target, what string) {
	v.rows = append(v.rows, verdict{what, found, target, v.Mark(kept)})
}

func (v *verdicts) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range v.rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.what, row.found, row.target, row.mark)
	}
	_ = t.Flush()
}

// interval is a figure as a cell has it.
func interval(i *rig.Interval) string {
	switch {
	case i == nil:
		return "failed"
	case i.Low == i.High:
		return paper.Number(i.Value)
	}
	return fmt.Sprintf("%s [%s, %s]", paper.Number(i.Value), paper.Number(i.Low), paper.Number(i.High))
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

func (e *entry) ratioOrNil() *rig.Interval {
	if e == nil {
		return nil
	}
	return e.ratio
}
