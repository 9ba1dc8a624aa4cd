package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The targets that are no ratios.
const (
	mostBytes = 1024
	leases    = 500 // in a renewal
	// Leases are renewed up to a tenth early with jitter, and up to another tenth early together with others: 20 statements
	// then come in 0.8 of the time.
	early = 1.25
)

// report prints what was found, and returns rig.ErrMissed if -check asks for it.
func report(w io.Writer, s settings, all []*result) error {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d, %d pinned connections and as many connections for the floor (SQLite 1), %d rounds of %s\n",
		runtime.Version(), runtime.GOMAXPROCS(0), s.connections, s.rounds, s.turn)
	for _, r := range all {
		fmt.Fprintf(w, "%s: %s\n", r.kind.Name, strings.Join(r.facts, "; "))
	}
	v := &verdicts{}
	if s.rates {
		rig.Table(w, "database\tpair\tgoroutines\tpairs/s\tratio (min–max)\ttarget\t", all, v.rates)
	}
	if s.allocs {
		rig.Table(w, "database\tallocations of a pair\tfloor\trecurring\tabove\tone-shot\tabove\t", all, allocs)
	}
	if s.held > 0 {
		rig.Table(w, "database\tlocks held\trenewals per TTL/3\tleases each\tgoroutines added\theap bytes a lock\tlost\t\t", all, v.held)
	}
	if s.check {
		return v.Err()
	}
	return nil
}

type verdicts struct{ rig.Verdicts }

func (v *verdicts) rates(w io.Writer, r *result) { race.Print(w, r.kind.Name, r.rates, &v.Verdicts) }

func allocs(w io.Writer, r *result) {
	c := r.costs
	recurring, fresh := c.recurring.Minus(c.floor), c.fresh.Minus(c.floor)
	fmt.Fprintf(w, "%s\tobjects\t%.0f\t%.0f\t%+.0f\t%.0f\t%+.0f\t\n", r.kind.Name,
		c.floor.Objects, c.recurring.Objects, recurring.Objects, c.fresh.Objects, fresh.Objects)
	fmt.Fprintf(w, "%s\tbytes\t%.0f\t%.0f\t%+.0f\t%.0f\t%+.0f\t\n", r.kind.Name,
		c.floor.Bytes, c.recurring.Bytes, recurring.Bytes, c.fresh.Bytes, fresh.Bytes)
}

func (v *verdicts) held(w io.Writer, r *result) {
	h := r.held
	most := math.Ceil(float64(h.Locks)/leases) * early
	kept := h.Renewals <= most && h.Goroutines < h.Locks/100 && h.Bytes <= mostBytes && h.Lost == 0
	fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%d\t%.0f\t%d\t%s\t\n", r.kind.Name,
		h.Locks, h.Renewals, h.PerRenewal, h.Goroutines, h.Bytes, h.Lost, v.Mark(kept))
}
