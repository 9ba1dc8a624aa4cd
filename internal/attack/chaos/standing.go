//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
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

// failovers has a line for each fault that has them.
func (s *summary) failovers(b *strings.Builder) {
	head := false
	for _, l := range s.lines {
		if len(l.Failovers) == 0 {
			continue
		}
		if !head {
			fmt.Fprintf(b, "\n## Failovers\n\n%s", failoversHead)
			head = true
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", l.Database, l.Fault, l.standing())
	}
}

// standing sums them up: how many, how many of them with lost commits, tokens granted twice or out
// of order, the times without a grant, and transactions of holders from before.
func (l *line) standing() string {
	var next []time.Duration
	lost, kept, refused := 0, 0, 0
	for _, f := range l.Failovers {
		if f.Lost {
			lost++
		}
		if f.Next >= 0 {
			next = append(next, f.Next)
		}
		kept, refused = kept+f.Kept, refused+f.Refused
	}
	slices.Sort(next)
	times := "none"
	if len(next) > 0 {
		times = tenths(next[len(next)/2]) + ", " + tenths(next[len(next)-1])
	}
	return fmt.Sprintf("%d | %d | %d | %d | %s | %d, %d", len(l.Failovers), lost, l.Violations[check.Twice],
		l.Violations[check.Falls], times, kept, refused)
}
