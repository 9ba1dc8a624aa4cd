package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The targets.
const (
	leastRatio = 1.0                    // of rowlock to the best polling by hand
	mostWait   = 300 * time.Millisecond // the 99th percentile on PostgreSQL, without holds
	leastShare = 0.5                    // of an equal one, with 8 processes or more
	mostShare  = 2.0
)

// report prints what was found, and returns rig.ErrMissed if -check asks for it.
func report(w io.Writer, s settings, all []*result) error {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d, %d rounds of %s\n", runtime.Version(), runtime.GOMAXPROCS(0), s.rounds, s.turn)
	for _, r := range all {
		fmt.Fprintf(w, "%s: %s\n", r.kind.Name, strings.Join(r.facts, "; "))
	}
	v := &verdicts{}
	rig.Table(w, "database\tprocesses\thold\tway\tpairs/s\tto best raw (min–max)\twait p50 ms\tp99 ms\tmax ms\tshares\tstatements/pair\t", all, v.lines)
	if s.check {
		return v.Err()
	}
	return nil
}

type verdicts struct{ rig.Verdicts }

func (v *verdicts) lines(w io.Writer, r *result) {
	for _, one := range r.scenes {
		best := one.best()
		for i, e := range one.entries {
			least, most := e.Shares()
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%.0f\t%s", r.kind.Name, one.processes, one.hold, e.Name, rig.SpreadOf(e.Rates).Median, e.ratio(best))
			fmt.Fprintf(w, "\t%.2f\t%.1f\t%.1f\t%.2f–%.2f\t", ms(e.Wait(0.5)), ms(e.Wait(0.99)), ms(e.Wait(1)), least, most)
			if r.kind.Name != "sqlite" {
				fmt.Fprintf(w, "%.1f", rig.SpreadOf(e.statements).Median)
			}
			fmt.Fprint(w, "\t")
			if i == 0 {
				fmt.Fprint(w, v.ours(r.kind, one, e, best))
			}
			fmt.Fprintln(w)
		}
	}
}

func (v *verdicts) ours(kind rig.Kind, one *scene, e, best *entry) string {
	kept := e.ratio(best).Median >= leastRatio
	if kind.Name == "postgres" && one.hold == 0 {
		kept = kept && e.Wait(0.99) <= mostWait
	}
	if least, most := e.Shares(); one.processes >= 8 && one.hold == 0 {
		kept = kept && least >= leastShare && most <= mostShare
	}
	return v.Mark(kept)
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
