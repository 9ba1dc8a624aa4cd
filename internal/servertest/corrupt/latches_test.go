package corrupt

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
)

var ofLatches = []string{"rowlock_latch", "rowlock_latch", "rowlock_party"}

// moments is how long a call may wait for parties that never come.
const moments = 3 * time.Millisecond

// ofLatch are the errors of package latch, and what ends a call that waits.
var ofLatch = []error{
	latch.ErrNotFound, latch.ErrParties, latch.ErrStale, latch.ErrBroken, latch.ErrFull, latch.ErrNotEntered,
	context.DeadlineExceeded, lease.ErrForeignTx,
}

// latchRun is one input.
type latchRun struct {
	*testing.T
	env *testdb.Env
	s   *latch.Latches
}

// FuzzLatches is FuzzRows for latches and barriers: nothing opens before its parties have come.
func FuzzLatches(f *testing.F) {
	seed(f)
	e := loose(f)
	s := latches(f, e)
	f.Fuzz(func(t *testing.T, rows, calls []byte) {
		fresh(t, e, &draw{rows}, ofLatches)
		r := &latchRun{T: t, env: e, s: s}
		d := &draw{calls}
		for range min(len(calls), 6) {
			r.call(d)
		}
	})
}

func (r *latchRun) call(d *draw) {
	all := []func(context.Context, *draw) error{
		r.open, r.find, r.countDown, r.await, r.count, r.reset, r.enter, r.leave, r.resetBarrier, r.sweep, r.countDownTx,
	}
	n := d.next(len(all))
	ctx, cancel := context.WithTimeout(r.Context(), bound)
	defer cancel()
	if err := all[n](ctx, d); !is(err, ofLatch) && !isTyped(err) || ctx.Err() != nil {
		r.Errorf("call %d: %v", n, err)
	}
}

// latch is nil if the one that d draws cannot be had.
func (r *latchRun) latch(ctx context.Context, d *draw) (*latch.Latch, error) {
	l, err := r.s.Find(ctx, d.key())
	if err != nil {
		return nil, err
	}
	if l.Parties() < 1 || l.Parties() > latch.MaxParties || l.Generation() < 1 {
		r.Errorf("a latch of %d parties in generation %d", l.Parties(), l.Generation())
	}
	return l, nil
}

func (r *latchRun) find(ctx context.Context, d *draw) error {
	_, err := r.latch(ctx, d)
	return err
}

func (r *latchRun) open(ctx context.Context, d *draw) error {
	parties := 1 + d.next(3)
	l, err := r.s.Open(ctx, d.key(), parties)
	if err == nil && (l.Parties() != parties || l.Generation() < 1) {
		r.Errorf("a latch of %d parties in generation %d, not of %d", l.Parties(), l.Generation(), parties)
	}
	return err
}

func (r *latchRun) countDown(ctx context.Context, d *draw) error {
	l, err := r.latch(ctx, d)
	if err == nil {
		err = l.CountDown(ctx, d.party())
	}
	return err
}

func (r *latchRun) countDownTx(ctx context.Context, d *draw) error {
	l, err := r.latch(ctx, d)
	if err != nil {
		return err
	}
	tx, err := r.env.DB.BeginTx(ctx, nil)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.CountDownTx(ctx, tx, d.party()); err != nil {
		return err
	}
	return tx.Commit()
}

func (r *latchRun) await(ctx context.Context, d *draw) error {
	l, err := r.latch(ctx, d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, moments)
	defer cancel()
	if err := l.Await(ctx); err != nil {
		return err
	}
	r.came(0, l.Name(), l.Parties())
	return nil
}

// came fails unless so many parties have come.
func (r *latchRun) came(kind int, name string, parties int) {
	var n int
	err := r.env.DB.QueryRow(r.env.SQL(`SELECT COUNT(*) FROM {rowlock_party} AS p JOIN {rowlock_latch} AS l
		ON p.id = l.id WHERE p.phase = 0 AND l.kind = ? AND l.key = ?`), kind, []byte(name)).Scan(&n)
	if err != nil || n < parties {
		r.Errorf("%q is open after %d of %d parties, %v", name, n, parties, err)
	}
}

func (r *latchRun) count(ctx context.Context, d *draw) error {
	l, err := r.latch(ctx, d)
	if err != nil {
		return err
	}
	n, err := l.Count(ctx)
	if err == nil && (n < 0 || n > l.Parties()) {
		r.Errorf("%d of %d parties lack", n, l.Parties())
	}
	return err
}

func (r *latchRun) reset(ctx context.Context, d *draw) error {
	l, err := r.latch(ctx, d)
	if err != nil {
		return err
	}
	next, err := l.Reset(ctx)
	if err == nil && next.Generation() != l.Generation()+1 {
		r.Errorf("generation %d after %d", next.Generation(), l.Generation())
	}
	return err
}

func (r *latchRun) barrier(ctx context.Context, d *draw) (*latch.Barrier, error) {
	return r.s.Barrier(ctx, d.key(), 1+d.next(2))
}

func (r *latchRun) enter(ctx context.Context, d *draw) error {
	b, err := r.barrier(ctx, d)
	if err != nil {
		return err
	}
	short, cancel := context.WithTimeout(ctx, moments)
	defer cancel()
	p := d.party()
	if err := b.Enter(short, p); err != nil {
		return err
	}
	r.came(1, b.Name(), b.Parties())
	left, cancel := context.WithTimeout(ctx, moments)
	defer cancel()
	return b.Leave(left, p)
}

func (r *latchRun) leave(ctx context.Context, d *draw) error {
	b, err := r.barrier(ctx, d)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, moments)
	defer cancel()
	return b.Leave(ctx, d.party())
}

func (r *latchRun) resetBarrier(ctx context.Context, d *draw) error {
	b, err := r.barrier(ctx, d)
	if err == nil {
		err = b.Reset(ctx)
	}
	return err
}

func (r *latchRun) sweep(ctx context.Context, d *draw) error {
	_, err := r.s.Sweep(ctx, 1+d.next(2))
	return err
}

func is(err error, any []error) bool {
	for _, e := range any {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
