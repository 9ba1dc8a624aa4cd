package pq_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/doctor"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/optimistic"
	"github.com/rowlockdb/rowlock/schema"
	"github.com/rowlockdb/rowlock/shedlock"
)

// left is a pool of which each connection has a transaction that the application has left open,
// after statements that have failed in it: unlike pgx, lib/pq lends it as it is.
func left(t *testing.T, e *testdb.Env, n int, fails ...string) *testdb.Env {
	t.Helper()
	e = through(t, e)
	e.DB.SetMaxOpenConns(n)
	e.DB.SetMaxIdleConns(n)
	lent := make([]*sql.Conn, n)
	for i := range lent {
		conn, err := e.DB.Conn(t.Context())
		must(t, err)
		_, err = conn.ExecContext(t.Context(), "BEGIN")
		must(t, err)
		for _, statement := range fails {
			if _, err := conn.ExecContext(t.Context(), statement); err == nil {
				t.Fatalf("%s has not failed", statement)
			}
		}
		lent[i] = conn
	}
	for _, conn := range lent {
		must(t, conn.Close())
	}
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAKeyIsLockedThoughTheApplicationHasLeftTransactionsOpen(t *testing.T) {
	e := testdb.Kinds[1].Open(t)
	locks, err := rowlock.Open(left(t, e, 8).DB, e.Dialect, nil)
	must(t, err)
	defer locks.Close()
	l, err := locks.Lock(t.Context(), "k")
	must(t, err)
	others, err := rowlock.Open(e.DB, e.Dialect, nil)
	must(t, err)
	defer others.Close()
	if _, err := others.TryLock(t.Context(), "k"); !errors.Is(err, rowlock.ErrHeld) {
		t.Errorf("another client: %v, want ErrHeld", err)
	}
	must(t, l.Unlock(t.Context()))
}

func TestAPartyHasCountedDownThoughTheApplicationHasLeftTransactionsOpen(t *testing.T) {
	e := testdb.Kinds[1].Open(t)
	latches, err := latch.New(left(t, e, 8).DB, e.Dialect, nil)
	must(t, err)
	l, err := latches.Open(t.Context(), "x", 1)
	must(t, err)
	must(t, l.CountDown(t.Context(), "p"))
	must(t, latches.Close())
	latches, err = latch.New(e.DB, e.Dialect, nil)
	must(t, err)
	defer latches.Close()
	l, err = latches.Find(t.Context(), "x")
	must(t, err)
	if n, err := l.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("%d parties lack (%v), and the only one was told that it has counted down", n, err)
	}
}

func TestAnUpdateIsCommittedThoughTheApplicationHasLeftTransactionsOpen(t *testing.T) {
	e := testdb.Kinds[1].Open(t)
	name := e.Dialect.Names().Prefix + "account"
	e.Exec(t, "CREATE TABLE "+name+" (id BIGINT PRIMARY KEY, version BIGINT NOT NULL)")
	t.Cleanup(func() { e.Exec(t, "DROP TABLE "+name) })
	e.Exec(t, "INSERT INTO "+name+" VALUES (1, 1)")
	type account struct{ ID, Version int64 }
	accounts, err := optimistic.NewTable[account](e.Dialect, name)
	must(t, err)
	db := left(t, e, 8).DB
	must(t, accounts.Update(t.Context(), db, &account{1, 1}))
	must(t, db.Close())
	if now, err := accounts.Get(t.Context(), e.DB, 1); err != nil || now.Version != 2 {
		t.Errorf("%+v, %v: the update was told as done", now, err)
	}
}

func TestShedlocksKeyIsLockedThoughTheApplicationHasLeftTransactionsOpen(t *testing.T) {
	e := testdb.Kinds[1].Open(t)
	name := e.Dialect.Names().Prefix + "shedlock"
	e.Exec(t, "CREATE TABLE "+name+" (name VARCHAR(64) NOT NULL PRIMARY KEY, lock_until TIMESTAMP NOT NULL, "+
		"locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL)")
	t.Cleanup(func() { e.Exec(t, "DROP TABLE "+name) })
	db := left(t, e, 8).DB
	for _, pool := range []*sql.DB{db, e.DB} {
		s, err := shedlock.Open(t.Context(), pool, e.Dialect, shedlock.Table(name))
		must(t, err)
		a, err := s.Acquire(t.Context(), []lease.AcquireRequest{
			{Key: "k", Owner: lease.NewOwner(), TTL: time.Minute},
		})
		must(t, err)
		if a[0].Granted != (pool == db) {
			t.Errorf("%+v, want one grant", a[0])
		}
		must(t, db.Close())
	}
}

// A transaction that rowlock begins meets what the application has left open on each connection. DoTx
// tries five times, and each connection that it meets is a try.
func TestATransactionBeginsThoughTheApplicationHasLeftOthersOpen(t *testing.T) {
	e := testdb.Kinds[1].Open(t)
	for name, begin := range map[string]func(t *testing.T, db *sql.DB) error{
		"Migrate": func(t *testing.T, db *sql.DB) error {
			other := e.New(dialect.Prefix("left_"))
			t.Cleanup(func() { must(t, schema.Uninstall(context.Background(), e.DB, other)) })
			return schema.Migrate(t.Context(), db, other)
		},
		"DoTx": func(t *testing.T, db *sql.DB) error {
			locks, err := rowlock.Open(db, e.Dialect, nil)
			must(t, err)
			defer locks.Close()
			return locks.DoTx(t.Context(), "k", func(context.Context, *sql.Tx) error { return nil })
		},
		"once": func(t *testing.T, db *sql.DB) error {
			keys, err := once.New(db, e.Dialect, nil)
			must(t, err)
			_, err = keys.Do(t.Context(), once.Request{Key: "k"},
				func(context.Context, *sql.Tx) ([]byte, error) { return nil, nil })
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := begin(t, left(t, e, 4).DB); err != nil {
				t.Error(err)
			}
		})
	}
}

// After a failure PostgreSQL refuses every statement of a transaction.
func TestATransactionThatHasFailedIsNoObstacle(t *testing.T) {
	e := testdb.Kinds[1].Open(t)
	failed := func(t *testing.T) *sql.DB { return left(t, e, 4, "SELECT 1/0").DB }
	tables := e.New(dialect.Prefix("failed_"))
	t.Cleanup(func() { must(t, schema.Uninstall(context.Background(), e.DB, tables)) })
	for _, step := range []struct {
		name string
		do   func(t *testing.T, db *sql.DB) error
	}{
		{"Migrate", func(t *testing.T, db *sql.DB) error { return schema.Migrate(t.Context(), db, tables) }},
		{"Migrate of what is there", func(t *testing.T, db *sql.DB) error { return schema.Migrate(t.Context(), db, tables) }},
		{"Open", func(_ *testing.T, db *sql.DB) error {
			locks, err := rowlock.Open(db, tables, nil)
			if err != nil {
				return err
			}
			return locks.Close()
		}},
		{"Protected", func(t *testing.T, db *sql.DB) error {
			_, err := schema.Protected(t.Context(), db, tables)
			return err
		}},
		{"doctor", func(t *testing.T, db *sql.DB) error {
			r, err := doctor.Examine(t.Context(), db, tables, &doctor.Options{Only: []string{"replication", "schema", "tables"}})
			for _, f := range r.Findings {
				if !f.Checked {
					t.Errorf("%+v", f)
				}
			}
			return err
		}},
		{"Down", func(t *testing.T, db *sql.DB) error { return schema.Down(t.Context(), db, tables) }},
	} {
		t.Run(step.name, func(t *testing.T) { must(t, step.do(t, failed(t))) })
	}
}
