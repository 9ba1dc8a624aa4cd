package forupdate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/ownrows"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// lock locks what r asks for, waiting, and returns what it has locked, by text.
func (l *Locker) lock(ctx context.Context, tx Tx, r request) (got map[string]bool, err error) {
	wait, began := l.wait(ctx), time.Now()
	if l.wholeFile() {
		return l.lockFile(ctx, tx, r, wait)
	}
	end := began.Add(wait)
	err = l.patiently(ctx, tx, wait, func() error {
		got, err = l.each(ctx, tx, r, func(n int) string {
			return l.d.LockRows(r.table, r.column, n, time.Until(end))
		})
		return err
	})
	return got, l.explain(ctx, r.what, waited(began), err)
}

func waited(since time.Time) string {
	return fmt.Sprintf("waited %s", time.Since(since).Round(time.Millisecond))
}

// try locks those rows of r that no other transaction has locked.
func (l *Locker) try(ctx context.Context, tx Tx, r request) (map[string]bool, error) {
	if l.wholeFile() {
		return l.lockFile(ctx, tx, r, 0)
	}
	got, err := l.each(ctx, tx, r, func(n int) string { return l.d.TryRows(r.table, r.column, n) })
	return got, l.explain(ctx, r.what, "asked once", err)
}

// each runs a SELECT for as many keys at once as suits the database, in their order.
func (l *Locker) each(ctx context.Context, tx Tx, r request, query func(n int) string) (map[string]bool, error) {
	all := make(map[string]bool, len(r.keys))
	for keys := range slices.Chunk(r.keys, l.d.AtOnce()) {
		got, err := l.query(ctx, tx, keys, query(len(keys)))
		if err != nil {
			return nil, err
		}
		maps.Copy(all, got)
	}
	return all, nil
}

// wait is how long to wait: no longer than ctx lasts, because a driver ends the connection with it.
func (l *Locker) wait(ctx context.Context) time.Duration {
	wait := l.timeout
	if end, ok := ctx.Deadline(); ok {
		wait = max(time.Millisecond, min(wait, time.Until(end)-time.Until(end)/10))
	}
	return wait
}

// patiently runs f with the limit on waiting set, and then resets the limit, even if ctx has ended
// meanwhile.
func (l *Locker) patiently(ctx context.Context, tx Tx, wait time.Duration, f func() error) error {
	restore, err := l.d.Patience(ctx, lease.InTx(tx), wait)
	if err != nil {
		return err
	}
	err = f()
	if restore == nil {
		return err
	}
	ctx, cancel := graceful(ctx)
	defer cancel()
	if failed := restore(ctx); failed != nil && err == nil {
		err = failed
	}
	return err
}

// lockFile takes SQLite's write lock. If r is of rows, it returns which of them exist.
//
// It asks without waiting, again and again, and waits in between, while the limit is as it was. If
// ctx ends, database/sql rolls the transaction back, and its connection goes back to the pool
// before the limit could be reset on it. If ctx ends while it asks, some hundred µs of each 20 ms,
// that happens all the same.
func (l *Locker) lockFile(ctx context.Context, tx Tx, r request, wait time.Duration) (got map[string]bool, err error) {
	began := time.Now()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err = l.patiently(ctx, tx, 0, func() error { return l.writeLock(ctx, tx) })
		left := wait - time.Since(began)
		if l.d.Waited(err) != sqlstore.TooLong || left <= 0 {
			break
		}
		if !retry.Sleep(ctx, min(pause, left)) {
			return nil, l.explain(ctx, r.what, waited(began), ctx.Err())
		}
	}
	if err == nil && r.table != "" {
		got, err = l.query(ctx, tx, r.keys, sqlstore.In(r.table, r.column, len(r.keys)))
	}
	return got, l.explain(ctx, r.what, waited(began), err)
}

func (l *Locker) writeLock(ctx context.Context, tx Tx) error {
	_, err := tx.ExecContext(ctx, l.d.Text("write-lock"))
	return err
}

// query runs a SELECT of keys and returns those that it found.
func (l *Locker) query(ctx context.Context, tx Tx, keys []any, query string) (map[string]bool, error) {
	if l.d.Dollars {
		query = sqlx.Rebind(sqlx.DOLLAR, query)
	}
	rows, err := tx.QueryContext(ctx, query, keys...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	got := make(map[string]bool, len(keys))
	for rows.Next() {
		var key any
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		got[ownrows.Text(key)] = true
	}
	return got, rows.Err()
}

// explain tells a wait in vain from a failure.
func (l *Locker) explain(ctx context.Context, what, how string, err error) error {
	switch waited := l.d.Waited(err); {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone), waited == sqlstore.NoWait:
		return ownrows.Explain(l.d, what, err)
	case waited == sqlstore.TooLate:
		return fmt.Errorf("%w, and has read data that another has changed since: %s: %w (roll back, and begin with "+
			"BEGIN IMMEDIATE or _txlock=immediate)", ErrDeferred, what, err)
	case l.wholeFile():
		return fmt.Errorf("%w: %w, or another has the file's write lock for longer: %s, %s: %w (begin with "+
			"BEGIN IMMEDIATE or _txlock=immediate, and a busy_timeout)", lease.ErrHeld, ErrDeferred, what, how, err)
	}
	return oneline.Join(fmt.Errorf("%w: %s: %s for another transaction: %w", lease.ErrHeld, what, how, err), ctx.Err())
}
