package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// The targets.
const (
	mostStatements = 5.0 // a second, of a process that waits
	leastRatio     = 0.8 // of hand-overs to commits
	mostMessages   = 3   // that a hand-over between processes may take
	mostCommits    = 2   // beyond a poll, where there are no messages
)

// report prints what was found, and returns rig.ErrMissed if -check asks for it.
func report(w io.Writer, s settings, all []*result) error {
	fmt.Fprintf(w, "%s, GOMAXPROCS %d, %d rounds of %s, statements counted for %s\n",
		runtime.Version(), runtime.GOMAXPROCS(0), s.rounds, s.turn, s.watch)
	for _, r := range all {
		fmt.Fprintf(w, "%s: %s\n", r.kind.Name, strings.Join(r.facts, "; "))
	}
	v := &verdicts{}
	if len(s.crowds()) > 0 {
		rig.Table(w, "database\twaiters\theld keys\tcounted by\tstatements/s\tof these clients\tlooks for commits\ttarget\t\t", all, v.crowds)
	}
	if s.parts["line"] {
		rig.Table(w, "database\tone key, goroutines\thand-overs/s\tUPDATE commits/s\tratio (min–max)\ttarget\t\t", all, v.line)
	}
	if s.parts["processes"] {
		rig.Table(w, fmt.Sprintf("database\tone key, %d processes\thand-overs\tother locks\tp50 ms\tp99 ms\tbeside it: p50 ms (rested)\t\ttarget p50\t\t",
			s.processes), all, v.relays)
	}
	if s.check {
		return v.Err()
	}
	return nil
}

type verdicts struct{ rig.Verdicts }

// crowds does not count SQLite's looks at its counter of commits, which is in memory: there is no server that they could cost anything.
func (v *verdicts) crowds(w io.Writer, r *result) {
	for _, c := range r.crowds {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%.1f\t%.1f\t%.1f\t≤ %.0f\t%s\t\n", r.kind.Name, c.waiters, c.keys, c.by, c.rate, c.sent, c.looks,
			mostStatements, v.Mark(c.rate-c.looks <= mostStatements))
	}
}

func (v *verdicts) line(w io.Writer, r *result) {
	l := r.line
	fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%s\t≥ %.2f\t%s\t\n", r.kind.Name, l.goroutines, l.handOvers.Median, l.commit.Median, l.ratio,
		leastRatio, v.Mark(l.ratio.Median >= leastRatio))
}

func (v *verdicts) relays(w io.Writer, r *result) {
	for _, y := range r.relays {
		how, beside := "any order", [2]string{}
		for i, b := range y.beside {
			beside[i] = fmt.Sprintf("%s %.2f (%.2f)", b.name, ms(middle(b.busy)), ms(middle(b.rested)))
		}
		target := pollMin.Microseconds() + mostCommits*middle(y.beside[0].busy)
		if len(y.beside) > 1 {
			target = mostMessages * middle(y.beside[1].busy)
		}
		mark, bound := "", ""
		if y.fair {
			how = "Fair"
		} else {
			bound = fmt.Sprintf("≤ %.2f", ms(target))
			mark = v.Mark(middle(y.latency) <= target)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.2f\t%.2f\t%s\t%s\t%s\t%s\t\n", r.kind.Name, how, y.latency.TotalCount(), y.other,
			ms(middle(y.latency)), ms(y.latency.ValueAtPercentile(99)), beside[0], beside[1], bound, mark)
	}
}

func middle(h *hdrhistogram.Histogram) int64 { return h.ValueAtPercentile(50) }

func ms(µs int64) float64 { return (time.Duration(µs) * time.Microsecond).Seconds() * 1e3 }
