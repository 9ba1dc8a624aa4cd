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
	// ttl is how long after a crash somebody else goes on.
	ttl = 3 * time.Second
	// minHold is more than the workers' clocks differ: whoever comes that much later does not find the key free again.
	minHold = 500 * time.Millisecond
)

// tick runs the job for one moment of the schedule, unless it has been run: here or in any other process, a moment ago or before a
// restart. All processes want the lock at the same moment. The first gets it, the others wait: when it is done they find that it is,
// and when it has died in the middle the next of them does the work.
func (w *worker) tick(ctx context.Context, at time.Time) error {
	return w.locks.Do(ctx, "cron/"+job, func(ctx context.Context, l *rowlock.Lock) error {
		by, err := w.ranBy(ctx, at)
		if err == nil {
			w.tell(at, "skipped", by)
			return nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		w.tell(at, "runs", "")
		if err := w.work(ctx); err != nil {
			return err
		}
		if err := w.record(ctx, l, at); err != nil {
			return err
		}
		w.tell(at, "done", "")
		return nil
	}, rowlock.MinHold(minHold), rowlock.Note(w.name))
}

// ranBy returns who has run the tick, or sql.ErrNoRows.
func (w *worker) ranBy(ctx context.Context, at time.Time) (by string, err error) {
	err = w.db.GetContext(ctx, &by, w.db.Rebind(`SELECT ran_by FROM cron_runs WHERE job = ? AND tick = ?`), job, at.Unix())
	return by, err
}

// work is the job. It ends with ctx, and so with the lock.
func (w *worker) work(ctx context.Context) error {
	select {
	case <-time.After(w.takes):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// record writes that the tick was run, with what the job has found out, if the lock is still ours: a worker that was stopped for a
// minute before this line writes nothing.
func (w *worker) record(ctx context.Context, l *rowlock.Lock, at time.Time) error {
	tx, err := w.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := l.Fence(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, tx.Rebind(`INSERT INTO cron_runs (job, tick, ran_by) VALUES (?, ?, ?)`), job, at.Unix(), w.name); err != nil {
		return err
	}
	return tx.Commit()
}
