package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// relay is how soon a key that one process unlocks is locked by the next.
type relay struct {
	fair    bool
	latency *hdrhistogram.Histogram // µs from the return of Unlock to the return of Lock
	beside  []*yardstick            // a commit, and a message if there are messages
	other   int                     // locks that were no hand-over: nobody waited, or nobody else
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, time.Minute.Microseconds(), 3)
}

func runRelay(ctx context.Context, d *rig.Database, s settings, fair bool, p *rig.Progress) (r *relay, err error) {
	if err := createRow(ctx, d); err != nil {
		return nil, err
	}
	beside, err := yardsticks(ctx, d)
	defer func() {
		for _, y := range beside {
			err = errors.Join(err, y.what.close())
		}
	}()
	if err != nil {
		return nil, err
	}
	t, err := rig.StartTeam(ctx, s.processes, job{d.Name, d.Source, d.Prefix, fair})
	defer func() { err = errors.Join(err, t.End()) }()
	if err != nil {
		return nil, err
	}
	if _, err := contenders(t, s.turn); err != nil { // to warm up
		return nil, err
	}
	r = &relay{fair: fair, latency: newHistogram(), beside: beside}
	for range s.rounds {
		p.Say(d.Name, fmt.Sprintf("%d processes, fair %t", s.processes, fair))
		if err := r.round(ctx, t, s.turn, p); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// createRow makes the row that is updated for comparison.
func createRow(ctx context.Context, d *rig.Database) error {
	c, err := rowlock.Open(d.Pool, d.Dialect, &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
	if err != nil {
		return err
	}
	l, err := c.Lock(ctx, updatedKey)
	if err == nil {
		err = l.Unlock(ctx)
	}
	return errors.Join(err, c.Close())
}

func (r *relay) round(ctx context.Context, t rig.Team, turn time.Duration, p *rig.Progress) error {
	for _, y := range r.beside {
		if err := y.during(ctx, turn/2); err != nil {
			return err
		}
	}
	p.Step()
	holds, err := contenders(t, turn)
	p.Step()
	r.pair(holds)
	return err
}

// contenders have all workers contend for so long.
func contenders(t rig.Team, d time.Duration) (all []hold, err error) {
	if err := t.Tell(d); err != nil {
		return nil, err
	}
	answers := make([][]hold, len(t))
	err = t.Hear(func(i int) any { return &answers[i] })
	for i, holds := range answers {
		for _, h := range holds {
			h.worker = i
			all = append(all, h)
		}
	}
	return all, err
}

// pair finds the hand-overs: the next token went to another process, which had asked for it before it was given up. The others'
// time would be that until somebody wanted the key.
func (r *relay) pair(holds []hold) {
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.Token, b.Token) })
	for i := range max(0, len(holds)-1) {
		from, to := holds[i], holds[i+1]
		if to.Token != from.Token+1 || to.worker == from.worker || to.Asked > from.Unlocking {
			r.other++
			continue
		}
		// Who polls may have it before Unlock has returned.
		_ = r.latency.RecordValue(max(0, to.Locked-from.Unlocked) / int64(time.Microsecond))
	}
}
