package quorum_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/quorum"
)

func three(t *testing.T) *quorum.Store {
	t.Helper()
	s, err := quorum.New(memstore.New(), memstore.New(), memstore.New())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func client(t *testing.T, s lease.Store, cfg *rowlock.Config) *rowlock.Client {
	t.Helper()
	c, err := rowlock.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The data is in one database, and the lock in three: even a member cannot say what the others
// know.
func TestALockOfAQuorumCannotFence(t *testing.T) {
	e := testdb.Kinds[0].Open(t)
	member, err := rowlock.OpenTable(e.DB, e.Dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	s, err := quorum.New(member, memstore.New(), memstore.New())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := client(t, s, nil)
	l, err := c.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := e.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Fence": l.Fence(t.Context(), tx), "UnlockTx": l.UnlockTx(t.Context(), tx)} {
		if !errors.Is(err, lease.ErrUnsupported) || !strings.Contains(err.Error(), "the lock is not in your database") {
			t.Errorf("%s: %v, want lease.ErrUnsupported with the reason", name, err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAFairClientIsRefused(t *testing.T) {
	if _, err := rowlock.New(three(t), &rowlock.Config{Fair: true}); !errors.Is(err, lease.ErrUnsupported) {
		t.Errorf("Fair: %v, want lease.ErrUnsupported", err)
	}
}

func TestClosedQuorumSaysSo(t *testing.T) {
	s := three(t)
	_ = s.Close()
	if _, err := s.Acquire(t.Context(), nil); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("acquire: %v", err)
	}
	if _, err := s.Inspect(t.Context(), lease.Filter{}); !errors.Is(err, lease.ErrClosed) {
		t.Errorf("inspect: %v", err)
	}
}

// Two clients wait for each other's lock on a quorum as on one database: by polls.
func TestWaitersOfAQuorumGetTheLockInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := three(t)
		a, b := client(t, s, nil), client(t, s, nil)
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
		time.Sleep(5 * ttl) // renewed all the while
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		released := time.Now()
		next := <-got
		if took := time.Since(released); took > time.Second {
			t.Errorf("the next holder came after %v", took)
		}
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		if both, err := a.TryLockAll(t.Context(), []string{"other", "k"}); err == nil || both != nil {
			t.Error("LockAll got a key that is held")
		}
		if o, err := b.TryLock(t.Context(), "other"); err != nil {
			t.Errorf("LockAll has left a part: %v", err)
		} else {
			_ = o.Unlock(t.Context())
		}
		_ = next.Unlock(t.Context())
	})
}
