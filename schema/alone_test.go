package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// withLocks makes an empty database that rowlock opens: of a file it asks that writers wait.
func withLocks(t *testing.T, s server) (driver, dsn string) {
	driver, dsn = s.fresh(t, s)
	if s.name == "sqlite" {
		dsn = "file:" + dsn + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_txlock=immediate"
	}
	return driver, dsn
}

func TestAloneRunsOneAtATime(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		var running, ran atomic.Int32
		together(t, 4, func() error {
			db, err := sql.Open(driver, dsn)
			if err != nil {
				return err
			}
			defer db.Close()
			return schema.Alone(t.Context(), db, s.dialect(), func(ctx context.Context) error {
				if running.Add(1) != 1 {
					t.Error("another runs at the same time")
				}
				defer running.Add(-1)
				if ran.Add(1) > 1 {
					return nil // the tool finds nothing to do
				}
				_, err := db.ExecContext(ctx, "CREATE TABLE orders (id INTEGER)")
				return err
			})
		})
		if n := ran.Load(); n != 4 {
			t.Errorf("ran %d times, want 4", n)
		}
		one[int](t, open(t, driver, dsn), "SELECT COUNT(*) FROM orders")
	})
}

func TestAloneAfterAKilledProcess(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		other, db := begun(t, "alone", s, driver, dsn), open(t, driver, dsn)
		if err := other.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Wait(); err != nil {
			t.Fatal(err)
		}
		c, err := rowlock.Open(db, s.dialect(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		held, err := c.Inspect(t.Context(), lease.Filter{})
		if err != nil || len(held) != 1 {
			t.Fatalf("got %v (%v), want the lock of the killed process", held, err)
		}
		bound := 30 * time.Second
		if s.name == "sqlite" {
			bound = 2 * time.Minute
		}
		if left := held[0].Remaining; left <= 0 || left > bound {
			t.Errorf("the lock ends in %s", left)
		}
		exec(t, db, "UPDATE rowlock SET expires_at = acquired_at")
		if err := schema.Alone(t.Context(), db, s.dialect(), func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

func TestAloneEndsTheContextOfALostLock(t *testing.T) {
	on(t, onPostgres, func(t *testing.T, s server) {
		db := s.open(t)
		err := schema.Alone(t.Context(), db, s.dialect(), func(ctx context.Context) error {
			exec(t, db, "UPDATE rowlock SET owner = NULL")
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, rowlock.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
	})
}

func TestAloneReturnsWhatTheFunctionDoes(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		failed := errors.New("a migration failed")
		if err := schema.Alone(t.Context(), db, s.dialect(), func(context.Context) error { return failed }); err != failed {
			t.Errorf("got %v, want the error itself", err)
		}
		func() {
			defer func() {
				if p := recover(); p != "a migration" {
					t.Errorf("the panic is %v", p)
				}
			}()
			_ = schema.Alone(t.Context(), db, s.dialect(), func(context.Context) error { panic("a migration") })
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second) // less than the lock would last
		defer cancel()
		if err := schema.Alone(ctx, db, s.dialect(), func(context.Context) error { return nil }); err != nil {
			t.Errorf("after a panic: %v", err)
		}
	})
}

func TestAloneRefusesWhatItCannotRun(t *testing.T) {
	db, d := onSQLite.open(t), onSQLite.dialect()
	f := func(context.Context) error { t.Error("run"); return nil }
	var none context.Context
	for what, err := range map[string]error{
		"the function is nil": schema.Alone(t.Context(), db, d, nil),
		"the database is nil": schema.Alone(t.Context(), (*sql.DB)(nil), d, f),
		"ctx is nil":          schema.Alone(none, db, d, f),
		"no dialect":          schema.Alone(t.Context(), db, nil, f),
	} {
		if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want ErrConfig that says %q", err, what)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := schema.Alone(ended, db, d, f); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	db.SetMaxOpenConns(1)
	if err := schema.Alone(t.Context(), db, d, f); !errors.Is(err, lease.ErrPool) {
		t.Errorf("got %v, want ErrPool", err)
	}
}
