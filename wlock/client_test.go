package wlock_test

import (
	"context"
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/tokenfence"
	"github.com/rowlockdb/rowlock/wlock"
)

func over(tb testing.TB, s *wlock.Store) *rowlock.Client {
	tb.Helper()
	c, err := rowlock.New(s, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// The lock is in a cluster and the data in SQLite. A holder is stopped past its lease, and writes
// after the next holder has.
func TestAStalledHolderCannotWriteBesideItsData(t *testing.T) {
	cluster := newDouble(t)
	e := testdb.Kinds[0].Open(t)
	if _, err := e.DB.ExecContext(t.Context(),
		"CREATE TABLE report (id TEXT PRIMARY KEY, token BIGINT NOT NULL DEFAULT 0)"); err != nil {
		t.Fatal(err)
	}
	if _, err := e.DB.ExecContext(t.Context(), "INSERT INTO report (id) VALUES ('q3')"); err != nil {
		t.Fatal(err)
	}
	fence, err := tokenfence.New(e.Dialect, tokenfence.Rows{Table: "report", Key: "id", Token: "token"})
	if err != nil {
		t.Fatal(err)
	}
	pass := func(l *rowlock.Lock) error {
		tx, err := e.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		if err := fence.Pass(t.Context(), tx, "q3", l.Token()); err != nil {
			return err
		}
		return tx.Commit()
	}
	stalled, err := over(t, open(t, patient(config(cluster)))).Lock(t.Context(), "q3", rowlock.NoRenew())
	if err != nil {
		t.Fatal(err)
	}
	cluster.Expire(wire("q3"))
	next, err := over(t, open(t, patient(config(cluster)))).Lock(t.Context(), "q3")
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range []*rowlock.Lock{stalled, next, stalled} {
		if err := pass(l); (i == 2) != errors.Is(err, rowlock.ErrFenced) {
			t.Errorf("%d: %v", i, err)
		}
	}
	tx, err := e.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := next.Fence(t.Context(), tx); !errors.Is(err, lease.ErrUnsupported) {
		t.Errorf("Fence: %v", err)
	}
}

// A waiter of another process is woken by an event: its next poll would be later.
func TestWaitersOfTwoProcessesGetTheLockInTurn(t *testing.T) {
	cluster := newDouble(t)
	a, b := over(t, open(t, patient(config(cluster)))), over(t, open(t, patient(config(cluster))))
	var last lease.Token
	for range 20 {
		l, err := a.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *rowlock.Lock)
		go func() {
			l, err := b.Lock(context.Background(), "k")
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := <-got
		if l.Token() <= last || next.Token() <= l.Token() {
			t.Errorf("tokens %d, %d, %d", last, l.Token(), next.Token())
		}
		last = next.Token()
		if err := next.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Nothing can be opened or sealed there: decision 0067.
func TestAStoreIsNoClusterOfABridge(t *testing.T) {
	if _, is := any(new(wlock.Store)).(paxosbridge.Cluster); is {
		t.Error("it is one")
	}
}
