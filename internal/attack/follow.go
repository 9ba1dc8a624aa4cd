//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/check"
	"github.com/rowlockdb/rowlock/internal/attack/history"
)

const (
	// readEvery is how often the records are read, and sayEvery how often a line is printed.
	readEvery = time.Second
	sayEvery  = 5 * time.Second
	// overdue is how much longer than the plan the processes may take to close.
	overdue = 60 * time.Second
)

// follow reads the records as they grow, says what there is, and returns when all processes have ended.
func (r *run) follow(ctx context.Context) (err error) {
	open := make(tails)
	defer func() {
		for _, t := range open {
			err = errors.Join(err, t.Close())
		}
	}()
	done := r.team.wait()
	end := time.Duration(r.plan.Phases[len(r.plan.Phases)-1].To - now())
	late := time.After(end + overdue)
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	said := now()
	for {
		over := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("the processes have not ended %s after the last phase", overdue)
		case <-done:
			over = true
		case <-tick.C:
		}
		more, err := r.team.read(open)
		if err != nil {
			return err
		}
		r.events = append(r.events, more...)
		if over {
			return r.team.trouble()
		}
		if t := now(); t-said >= int64(sayEvery) {
			said = t
			r.progress(t)
		}
		if r.first && len(check.Calls(r.events).Violations) > 0 {
			r.team.kill()
		}
	}
}

// progress prints a line: what was done so far, and what came of it.
func (r *run) progress(t int64) {
	n := tally(r.events)
	name := "closing"
	for _, p := range r.plan.Phases {
		if t < p.To {
			name = p.Name
			break
		}
	}
	fmt.Printf("attack: %4.0f s %-7s %s\n", time.Duration(t-r.start).Seconds(), name, n)
}

// totals count events.
type totals struct{ calls, grants, unlocks, writes, moves, lost, unknown int }

func (n totals) String() string {
	return fmt.Sprintf("%d calls, %d grants, %d unlocks, %d writes, %d moves, %d lost, %d unknown",
		n.calls, n.grants, n.unlocks, n.writes, n.moves, n.lost, n.unknown)
}

func tally(events []history.Event) (n totals) {
	for i := range events {
		e := &events[i]
		if e.Kind == history.Stall {
			continue
		}
		n.calls++
		switch {
		case e.Result == history.Lost:
			n.lost++
		case e.Result == history.Unknown:
			n.unknown++
		case e.Result != history.OK:
		case e.Kind == history.Grant:
			n.grants++
		case e.Kind == history.Unlock:
			n.unlocks++
		case e.Kind == history.Write:
			n.writes++
		case e.Kind == history.Move:
			n.moves++
		}
	}
	return n
}
