package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

const reapingBeside = 16 // goroutines that lock keys of their own meanwhile

// reaped is what the reaper at work costs those who lock.
type reaped struct {
	rows, removed int64
	took          time.Duration // that the reaper was at work
	quiet, busy   []float64     // p99 of a pair in ms, by round
	ratio         rig.Interval
}

// reaping measures in turns with the reaper at rest and at work on rows that have been dead for longer than it retains any.
func (f *field) reaping(ctx context.Context, s settings, p *rig.Progress) (*reaped, error) {
	r := &reaped{rows: int64(s.dead)}
	p.Say(f.d.Name, fmt.Sprintf("making %d dead rows", s.dead))
	if err := f.makeWalk(ctx, deadSeries, s.dead, 2*time.Hour); err != nil {
		return nil, err
	}
	for range s.rounds {
		p.Say(f.d.Name, "the reaper rests")
		quiet, err := f.p99(ctx, s)
		if err != nil {
			return nil, err
		}
		p.Say(f.d.Name, "the reaper works")
		busy, err := f.whileReaping(ctx, s, r)
		if err != nil {
			return nil, err
		}
		r.quiet, r.busy = append(r.quiet, quiet), append(r.busy, busy)
	}
	r.ratio = rig.RatioOfMedians(r.busy, r.quiet)
	left, err := f.dead(ctx)
	r.removed = r.rows - left
	return r, err
}

const deadSeries = 'x'

// dead counts the dead rows that are left.
func (f *field) dead(ctx context.Context) (n int64, err error) {
	from, to := race.Key(deadSeries, 0, 0), race.Key(deadSeries+1, 0, 0)
	err = f.d.Pool.QueryRowContext(ctx, f.d.SQL("SELECT count(*) FROM {rowlock} WHERE {key} >= ? AND {key} < ?"), []byte(from), []byte(to)).Scan(&n)
	return n, err
}

// p99 is that of a pair on keys that nobody else wants, over three turns' time: it takes many pairs to know.
func (f *field) p99(ctx context.Context, s settings) (float64, error) {
	e := &entry{goroutines: s.level(reapingBeside), latency: newHistogram()}
	for _, c := range f.contenders {
		if c.name == nameUpdate {
			e.contender = c
		}
	}
	_, err := f.undisturbed(ctx, e, 3*s.turn)
	return ms(e.latency, 99), err
}

// whileReaping measures while another client's reaper removes rows, as it does by default but without a minute's rest.
func (f *field) whileReaping(ctx context.Context, s settings, r *reaped) (p99 float64, err error) {
	before, err := f.dead(ctx)
	if err != nil {
		return 0, err
	}
	cfg := config(s.connections, rowlock.Update, false)
	cfg.Reaper = rowlock.ReaperConfig{Every: 10 * time.Millisecond}
	began := time.Now()
	other, err := rowlock.Open(f.d.Pool, f.d.Dialect, cfg)
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, other.Close())
		r.took += time.Since(began)
	}()
	if err := f.awaitFewer(ctx, before); err != nil {
		return 0, err
	}
	return f.p99(ctx, s)
}

// awaitFewer waits until the reaper is seen to work, or has nothing left to do.
func (f *field) awaitFewer(ctx context.Context, than int64) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for than > 0 {
		n, err := f.dead(ctx)
		if err != nil {
			return fmt.Errorf("the reaper removes nothing: %w", err)
		}
		if n < than {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}
