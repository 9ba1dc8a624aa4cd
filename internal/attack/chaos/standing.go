//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// standing is how the workers came through one failover.
type standing struct {
	Lost bool // commits
	// Next is the time from the new primary's first moment to the first grant asked for after the old
	// one's last.
	Next time.Duration
	// Kept and Refused count the transactions that holders from before it began after it.
	Kept, Refused int
}

func (r *round) standings() (list []standing) {
	for i, f := range r.failovers {
		end := r.plan.Phases[0].To
		if i+1 < len(r.failovers) {
			end = r.failovers[i+1].killed
		}
		list = append(list, f.judge(r.events, end))
	}
	return list
}

// judge looks at the reign that begins with a failover and ends at end.
func (f *failover) judge(events []history.Event, end int64) standing {
	s := standing{Lost: f.lost, Next: -1}
	before := make(map[history.Holder]bool)
	for i := range events {
		e := &events[i]
		if e.Kind == history.Grant && e.Result == history.OK && e.Told < f.killed {
			before[e.Holder()] = true
		}
		if e.Kind == history.Grant && e.Result == history.OK && e.Sent > f.killed && e.Told < end {
			if next := max(0, time.Duration(e.Told-f.ready)); s.Next < 0 || next < s.Next {
				s.Next = next
			}
		}
	}
	for i := range events {
		e := &events[i]
		if e.Kind != history.Write || e.Sent < f.ready || e.Sent > end || !before[e.Holder()] {
			continue
		}
		if e.Result == history.OK {
			s.Kept++
		} else if e.Result == history.Lost {
			s.Refused++
		}
	}
	return s
}

// standing sums up a fault's failovers, or is nil if it has none.
func (l *line) standing() *failed {
	if len(l.Failovers) == 0 {
		return nil
	}
	all := &failed{Number: len(l.Failovers), Repeated: l.Violations[check.Twice], Fallen: l.Violations[check.Falls]}
	var next []time.Duration
	for _, f := range l.Failovers {
		if f.Lost {
			all.Lossy++
		}
		if f.Next >= 0 {
			next = append(next, f.Next)
		}
		all.Committed, all.Refused = all.Committed+f.Kept, all.Refused+f.Refused
	}
	if n := len(next); n > 0 {
		slices.Sort(next)
		all.Median, all.Longest = rounded(next[n/2]), rounded(next[n-1])
	}
	return all
}

func (f *failed) String() string {
	return fmt.Sprintf("%d, %d lossy; tokens: %d repeated, %d fallen; next grant after %s, %s at most; "+
		"writes of holders from before: %d committed, %d refused",
		f.Number, f.Lossy, f.Repeated, f.Fallen, f.Median, f.Longest, f.Committed, f.Refused)
}
