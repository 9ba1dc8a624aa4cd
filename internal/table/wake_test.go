package table_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// sleeper is a process that listens and waits for a key.
type sleeper struct {
	store   *table.Store
	process lease.Owner
	heard   chan bool // whether it alone was told
}

func sleepers(t *testing.T, e *testdb.Env, n int, key string) []*sleeper {
	t.Helper()
	var all []*sleeper
	for range n {
		s := &sleeper{openOn(t, e, e.Dialect, true), lease.NewOwner(), make(chan bool, 100)}
		go func() {
			_ = s.store.ListenAs(t.Context(), s.process, func(_ string, chosen bool) { s.heard <- chosen })
		}()
		if s.hears(t) {
			t.Fatal("the beginning was told to it alone")
		}
		wantIs(t, s.store.Register(t.Context(), s.process, "web-1/4711/orders", []string{key}, ttl), nil)
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sleeper) int { return bytes.Compare(a.process[:], b.process[:]) })
	return all
}

// hears is the next message, and whether the process alone was told.
func (s *sleeper) hears(t *testing.T) (chosen bool) {
	t.Helper()
	select {
	case chosen = <-s.heard:
	case <-time.After(patience):
		t.Fatal("hears nothing")
	}
	return chosen
}

func TestProcessesThatWakeTheNextTakeTurns(t *testing.T) {
	e := on(t, "postgres")
	all := sleepers(t, e, 3, "key")
	for i := range 2 * len(all) {
		from, to := all[i%len(all)], all[(i+1)%len(all)]
		wantIs(t, from.store.Wake(t.Context(), from.process, []string{"key"}), nil)
		if chosen := to.hears(t); !chosen {
			t.Fatalf("wake %d: all were told", i)
		}
		// What is told to all comes after it on every connection: nothing else may stand
		// before it.
		wantIs(t, from.store.Announce(t.Context(), []string{"key"}), nil)
		for j, s := range all {
			if s.hears(t) {
				t.Fatalf("wake %d: process %d was woken too", i, j)
			}
		}
	}
}

// A process that waits but does not listen would be told in vain. If there is no other, all are
// told.
func TestOnlyAProcessThatListensIsWoken(t *testing.T) {
	e := on(t, "postgres")
	one := sleepers(t, e, 1, "key")[0]
	for range 8 {
		wantIs(t, one.store.Register(t.Context(), lease.NewOwner(), "", []string{"key", "other"}, ttl), nil)
	}
	waker, ctx := openOn(t, e, e.Dialect, true), t.Context()
	wake := func(from lease.Owner, key string, want bool) {
		t.Helper()
		wantIs(t, waker.Wake(ctx, from, []string{key}), nil)
		if chosen := one.hears(t); chosen != want {
			t.Errorf("%q: told alone %t, want %t", key, chosen, want)
		}
	}
	wake(lease.NewOwner(), "key", true)
	wake(lease.NewOwner(), "other", false)
	wake(one.process, "key", false) // it need not wake itself
	wantIs(t, one.store.Unregister(ctx, one.process, []string{"key"}), nil)
	wake(lease.NewOwner(), "key", false)
}

func TestListeningAsNobodyIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s := openOn(t, e, e.Dialect, true)
		wantIs(t, s.ListenAs(context.Background(), lease.Owner{}, func(string, bool) {}), lease.ErrConfig)
	})
}

func TestWaitingProcessesAreCounted(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		s, ctx := openOn(t, e, e.Dialect, true), t.Context()
		for i := range 3 {
			wantIs(t, s.Register(ctx, lease.NewOwner(), "", []string{"b", "a"}[:1+i%2], ttl), nil)
		}
		n, err := s.Waiting(ctx, []string{"b", "nobody's", "a"})
		if wantIs(t, err, nil); !slices.Equal(n, []int{3, 0, 1}) {
			t.Errorf("counted %d", n)
		}
	})
}
