package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock"
)

const (
	job = "report"
	// ttl is how long after a crash another worker takes the tick over.
	ttl = 3 * time.Second
	// minHold is longer than the workers' clocks differ, so that a worker that comes that much
	// later does not find the key free again.
	minHold = 500 * time.Millisecond
	// look is how often a worker that found the key held reads whether the tick has been run.
	look = 200 * time.Millisecond
)

// tick runs the job for one moment of the schedule, unless it has been run: in this or another
// process, a moment ago or before a restart. All processes come at the same moment. The first gets
// the lock, and the others poll: they see when the tick is done. If its worker died in the middle,
// the first to come after its lease does the work.
//
// They do not wait for the lock: each would hold it for minHold, only to see that there is nothing
// to do, and a dozen processes would still be at it at the next tick.
func (w *worker) tick(ctx context.Context, at time.Time) error {
	for {
		over, err := w.wasRun(ctx, at)
		if over || err != nil {
			return err
		}
		err = w.try(ctx, at)
		var held *rowlock.HeldError
		if !errors.As(err, &held) {
			return err
		}
		if err := sleep(ctx, max(time.Millisecond, min(held.Remaining, look))); err != nil {
			return err
		}
	}
}

// try runs the tick unless another worker is at it.
func (w *worker) try(ctx context.Context, at time.Time) error {
	l, err := w.locks.TryLock(ctx, "cron/"+job, rowlock.MinHold(minHold), rowlock.Note(w.name))
	if err != nil {
		return err
	}
	defer func() { _ = l.Unlock(ctx) }() // the write was fenced: an error changes nothing
	if over, err := w.wasRun(ctx, at); over || err != nil {
		return err // by a worker that finished between our read and our lock
	}
	w.tell(at, "runs", "")
	if err := w.work(ctx, l); err != nil {
		return err
	}
	if err := w.record(ctx, l, at); err != nil {
		return err
	}
	w.tell(at, "done", "")
	return nil
}

// wasRun reports whether a worker has run the tick.
func (w *worker) wasRun(ctx context.Context, at time.Time) (bool, error) {
	by, err := w.ranBy(ctx, at)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	}
	w.tell(at, "skipped", by)
	return true, nil
}

// ranBy returns which worker has run the tick, or sql.ErrNoRows.
func (w *worker) ranBy(ctx context.Context, at time.Time) (by string, err error) {
	err = w.db.GetContext(ctx, &by, w.db.Rebind(`SELECT ran_by FROM `+w.runs+` WHERE job = ? AND tick = ?`), job, at.Unix())
	return by, err
}

// work is the job. It ends when the lock does.
func (w *worker) work(ctx context.Context, l *rowlock.Lock) error {
	select {
	case <-time.After(w.takes):
		return nil
	case <-l.Context().Done():
		return context.Cause(l.Context())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// record writes that the tick was run, with the job's result, if the lock is still ours. A worker
// that was stopped for a minute before this line writes nothing.
func (w *worker) record(ctx context.Context, l *rowlock.Lock, at time.Time) error {
	return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, w.db.Rebind(`INSERT INTO `+w.runs+` (job, tick, ran_by) VALUES (?, ?, ?)`),
			job, at.Unix(), w.name)
		return err
	})
}
