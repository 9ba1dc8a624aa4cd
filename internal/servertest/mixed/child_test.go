package mixed

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/semaphore"
)

// TestChildAtWork is the child process.
func TestChildAtWork(t *testing.T) {
	servertest.AtWork(t, map[string]servertest.Job{"work": func(c *servertest.Worker) error {
		fmt.Println("child: works")
		w := worker{locks: c.Locks, db: c.DB, sql: c.SQL, table: c.Table}
		for {
			if err := w.round(context.Background()); err != nil {
				return err
			}
		}
	}})
}

const limit = 2

var keys = []string{"a", "b", "c", "d"}

// worker locks random mixtures, and works on a row of its table for each key.
type worker struct {
	locks *rowlock.Client
	db    *sql.DB
	sql   func(string) string
	table string
}

// round is one LockEach with a transaction under it. Errors are those of a test that has failed.
func (w worker) round(ctx context.Context) error {
	sem, err := semaphore.New(w.locks, "s", limit)
	if err != nil {
		return err
	}
	var alone, shared []string
	for _, i := range rand.Perm(len(keys))[:1+rand.IntN(3)] {
		if rand.IntN(2) == 0 {
			alone = append(alone, keys[i])
		} else {
			shared = append(shared, keys[i])
		}
	}
	parts := []rowlock.Part{rowlock.Exclusive(alone...), rowlock.Shared(shared...)}
	if n := rand.IntN(limit + 1); n > 0 {
		parts = append(parts, sem.Permits(n))
	}
	short, cancel := context.WithTimeout(ctx, time.Duration(5+rand.IntN(3000))*time.Millisecond)
	defer cancel()
	l, err := w.locks.LockEach(short, parts)
	if err != nil {
		return passes(err)
	}
	err = w.work(ctx, l, alone, shared)
	_ = l.Unlock(ctx)
	return err
}

// passes is nil for an error that the load of the test explains.
func passes(err error) error {
	for _, pass := range []error{
		rowlock.ErrHeld, rowlock.ErrBusy, rowlock.ErrUnknown, rowlock.ErrLost, rowlock.ErrFenced,
		context.DeadlineExceeded, rowlock.ErrClosed,
	} {
		if errors.Is(err, pass) {
			return nil
		}
	}
	return err
}

// work counts in each exclusive row once by what it has read and once by what the row has: these
// differ if another has written between. A shared row must not change at all.
func (w worker) work(ctx context.Context, l *rowlock.Locks, alone, shared []string) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return nil // the database has other work
	}
	defer func() { _ = tx.Rollback() }()
	if err := l.Fence(ctx, tx); err != nil {
		return passes(err)
	}
	seen := make(map[string]int64)
	read := func(key string) (n int64, err error) {
		query := w.sql(`SELECT n FROM ` + w.table + ` WHERE k = ?`)
		return n, tx.QueryRowContext(ctx, query, key).Scan(&n)
	}
	for _, key := range append(append([]string(nil), alone...), shared...) {
		if seen[key], err = read(key); err != nil {
			return nil
		}
	}
	time.Sleep(time.Duration(rand.IntN(3)) * time.Millisecond)
	for _, key := range shared {
		if n, err := read(key); err == nil && n != seen[key] {
			return fmt.Errorf("%q was %d and then %d beside a reader", key, seen[key], n)
		}
	}
	for _, key := range alone {
		update := w.sql(`UPDATE ` + w.table + ` SET n = ?, m = m + 1 WHERE k = ?`)
		if _, err := tx.ExecContext(ctx, update, seen[key]+1, key); err != nil {
			return nil
		}
	}
	_ = tx.Commit()
	return nil
}
