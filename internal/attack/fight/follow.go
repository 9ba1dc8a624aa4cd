//go:build linux

package fight

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

// follow reads the records as they grow, says what there is, and returns when all processes have
// ended.
func (r *run) follow(ctx context.Context) error {
	said := Now()
	return r.team.Follow(ctx, readEvery, overdue, func(more []history.Event) {
		r.events = append(r.events, more...)
		if t := Now(); t-said >= int64(sayEvery) {
			said = t
			r.progress(t)
		}
		if r.first && len(check.Calls(r.events).Violations) > 0 {
			r.team.Kill()
		}
	})
}

// Follow reads the records about once in every as they grow, calls f with what is new, and returns
// when all workers have ended. It fails if they have not overdue after the plan's end, which Begin
// has set.
func (t *Team) Follow(ctx context.Context, every, overdue time.Duration, f func([]history.Event)) (err error) {
	open := make(tails)
	defer func() {
		for _, tail := range open {
			err = errors.Join(err, tail.Close())
		}
	}()
	done := t.wait()
	late := time.After(time.Duration(t.end-Now()) + overdue)
	for over := false; !over; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("the workers have not ended %s after the plan's end", overdue)
		case <-done:
			over = true
		case <-time.After(every):
		}
		more, err := t.read(open)
		if err != nil {
			return err
		}
		f(more)
	}
	return t.trouble()
}

// progress prints a line: what was done so far, and what came of it.
func (r *run) progress(t int64) {
	n := Tally(r.events)
	name := "closing"
	for _, p := range r.plan.Phases {
		if t < p.To {
			name = p.Name
			break
		}
	}
	fmt.Printf("attack: %4.0f s %-7s %s\n", time.Duration(t-r.start).Seconds(), name, n)
}

// Totals count events.
type Totals struct {
	Calls, Grants, Unlocks, Writes, Moves, Lost, Unknown, Unfenced int
	Passes
}

// Passes are hand-overs by the COMMITs of sections.
type Passes struct{ Acknowledged, TakenBack, Unknown int }

func (p Passes) String() string {
	return fmt.Sprintf("%d hand-overs in COMMIT, %d taken back, %d of an unknown COMMIT", p.Acknowledged, p.TakenBack, p.Unknown)
}

// Add adds other ones.
func (p *Passes) Add(q Passes) {
	p.Acknowledged += q.Acknowledged
	p.TakenBack += q.TakenBack
	p.Unknown += q.Unknown
}

func (p *Passes) note(is history.Result) {
	switch is {
	case history.OK:
		p.Acknowledged++
	case history.Unknown:
		p.Unknown++
	default:
		p.TakenBack++
	}
}

func (n Totals) String() string {
	return fmt.Sprintf("%d calls, %d grants, %d unlocks, %d writes, %d moves, %d lost, %d unknown, %d refused without a fence",
		n.Calls, n.Grants, n.Unlocks, n.Writes, n.Moves, n.Lost, n.Unknown, n.Unfenced)
}

// Tally counts.
func Tally(events []history.Event) (n Totals) {
	for i := range events {
		e := &events[i]
		if e.Kind == history.Stall {
			continue
		}
		n.Calls++
		if e.Passes {
			n.Passes.note(e.Result)
		}
		switch {
		case e.Result == history.Lost:
			n.Lost++
		case e.Result == history.Unknown:
			n.Unknown++
		case e.Result == history.Unfenced:
			n.Unfenced++
		case e.Result != history.OK:
		case e.Kind == history.Grant:
			n.Grants++
		case e.Kind == history.Unlock:
			n.Unlocks++
		case e.Kind == history.Write:
			n.Writes++
		case e.Kind == history.Move:
			n.Moves++
		}
	}
	return n
}
