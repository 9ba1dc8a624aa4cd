package main

import (
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/paper"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// limits are what a short run can see: not how fast a pair is, but what it sends and allocates,
// which no load of the machine changes. A pair that exceeds them has lost something that speed
// rests on.
var limits = struct {
	alone, crowd float64 // round trips of a pair on a server: with one caller, and with a hundred
	objects      map[string]float64
}{2.4, 1, map[string]float64{"sqlite": 75, "postgres": 35, "mariadb": 60, "mysql": 60}}

// exceeded says which limits a run has exceeded, and how many held locks it has lost.
func exceeded(s settings, all []*result) error {
	var errs []error
	most := func(most, found float64, format string, args ...any) {
		if found > most {
			errs = append(errs, fmt.Errorf(format+": %s, and at most %v is allowed", append(args, paper.Number(found), most)...))
		}
	}
	for _, r := range all {
		name := r.kind.Name
		if r.held != nil {
			most(0, float64(r.held.Lost), "%s: held locks that were lost", name)
		}
		if r.allocs != nil {
			most(limits.alone, r.allocs[nameUpdate].trips, "%s, 1 caller: round trips of a pair", name)
			most(limits.objects[name], r.allocs[nameUpdate].Objects, "%s: allocations of a pair", name)
		}
		most(limits.crowd, trips(r, s.level(1024)), "%s, %d callers: round trips of a pair", name, s.level(1024))
	}
	return errors.Join(errs...)
}

// trips are the round trips of rowlock's pairs on average, or NaN, which exceeds nothing.
func trips(r *result, callers int) float64 {
	e := find(r.free, with(nameUpdate, callers))
	if !ran(e) {
		return 0
	}
	return rig.Known(e.costs, func(c rig.Cost) float64 { return c.Trips })
}
