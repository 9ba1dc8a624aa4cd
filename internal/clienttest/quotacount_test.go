package clienttest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// most is the quota of the namespaces here.
const most = 6

// wantCounted wants n locks of a namespace to count as held: as many more as the quota leaves can
// be taken, and not one more.
func wantCounted(t *testing.T, c *rowlock.Client, n int) {
	t.Helper()
	fresh := make([]string, most-n+1)
	for i := range fresh {
		fresh[i] = fmt.Sprintf("fresh %d", i)
	}
	_, err := c.TryLockAll(t.Context(), fresh)
	wantFull(t, err, lease.QuotaError{Namespace: "a", What: "held", Limit: most, Asked: len(fresh)})
	if n == most {
		return
	}
	all, err := c.TryLockAll(t.Context(), fresh[1:])
	if err != nil {
		t.Fatalf("%d of %d locks are held: %v", n, most, err)
	}
	if err := all.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func endAll(t *testing.T, l *rowlock.Locks) {
	t.Helper()
	if err := l.Unlock(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestEachKeyOfACallCountsAndNoSecondHandle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenant(t, Client(t, memstore.New(), nil), "a", rowlock.Quota{Held: most})
		all := takeAll(t, t.Context(), c.LockAll, "x", "y")
		wantCounted(t, c, 2)
		again := takeAll(t, all.Context(), c.LockAll, "x", "y", "z")
		wantCounted(t, c, 3)
		nested := takeAll(t, again.Context(), c.LockAll, "x", "z")
		one, err := c.Lock(nested.Context(), "y", rowlock.Reentrant())
		if err != nil {
			t.Fatal(err)
		}
		wantCounted(t, c, 3)
		Unlock(t, one)
		endAll(t, nested)
		wantCounted(t, c, 3)
		endAll(t, again)
		wantCounted(t, c, 2)
		endAll(t, all)
		wantCounted(t, c, 0)
	})
}

func TestEachReaderOfAKeyCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tenant(t, Client(t, memstore.New(), nil), "a", rowlock.Quota{Held: most})
		all := takeAll(t, t.Context(), c.RLockAll, "x", "y")
		other := takeAll(t, t.Context(), c.RLockAll, "x", "y")
		wantCounted(t, c, 4)
		nested := takeAll(t, all.Context(), c.RLockAll, "x", "z")
		wantCounted(t, c, 5)
		endAll(t, nested)
		endAll(t, other)
		wantCounted(t, c, 2)
		endAll(t, all)
		l := Take(t, c, "x")
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantCounted(t, c, 1)
		Unlock(t, l)
		wantCounted(t, c, 0)
	})
}

// takeAll locks keys together, with second handles of those that ctx holds.
func takeAll(
	t *testing.T, ctx context.Context,
	lock func(context.Context, []string, ...rowlock.Option) (*rowlock.Locks, error), keys ...string,
) *rowlock.Locks {
	t.Helper()
	all, err := lock(ctx, keys, rowlock.Reentrant())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A lock of which the grant came too late ended before its call did: it counts no more, and it does
// not make room for another either.
func TestGrantsThatComeTooLateDoNotCount(t *testing.T) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair %t", fair), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lateStore{Store: memstore.New()}
				cfg := &rowlock.Config{Fair: fair, Reaper: rowlock.ReaperConfig{Off: true}}
				c := tenant(t, Client(t, s, cfg), "a", rowlock.Quota{Held: most})
				kept := Take(t, c, "kept")
				for name, lock := range map[string]func() error{
					"Lock": func() error { _, err := c.Lock(t.Context(), "w"); return err },
					"LockAny": func() error {
						_, err := c.LockAny(t.Context(), []string{"w", "x"})
						return err
					},
					"LockAll": func() error {
						_, err := c.LockAll(t.Context(), []string{"w", "x", "y"})
						return err
					},
					"TryLockAll": func() error {
						_, err := c.TryLockAll(t.Context(), []string{"w", "x", "y"})
						return err
					},
					"RLockAll": func() error {
						_, err := c.RLockAll(t.Context(), []string{"w", "x"})
						return err
					},
					"LockAll within": func() error {
						_, err := c.LockAll(kept.Context(), []string{"kept", "w", "x"}, rowlock.Reentrant())
						return err
					},
				} {
					s.late.Store(true)
					WantIs(t, name, lock(), rowlock.ErrLost)
					s.late.Store(false)
					time.Sleep(time.Minute) // what was granted is released, or has expired
					wantCounted(t, c, 1)
				}
				Unlock(t, kept)
			})
		})
	}
}

// lateStore is a store of which grants come when their leases have ended, while late is set.
type lateStore struct {
	*memstore.Store
	late atomic.Bool
}

func (s *lateStore) wait() {
	if s.late.Load() {
		time.Sleep(Trust)
	}
}

func (s *lateStore) Acquire(
	ctx context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	defer s.wait()
	return s.Store.Acquire(ctx, reqs)
}

func (s *lateStore) AcquireAll(
	ctx context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	defer s.wait()
	return s.Store.AcquireAll(ctx, reqs)
}

func (s *lateStore) AcquireAny(
	ctx context.Context, reqs []lease.AcquireRequest, n int,
) ([]lease.Acquired, error) {
	defer s.wait()
	return s.Store.AcquireAny(ctx, reqs, n)
}

func (s *lateStore) Claim(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	defer s.wait()
	return s.Store.Claim(ctx, reqs)
}

func (s *lateStore) Share(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	defer s.wait()
	return s.Store.Share(ctx, reqs)
}

// A hook that panics ends the call: what was granted is released, and counts no more.
func TestACallThatPanicsDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := &rowlock.Config{}
		cfg.Hooks.Acquired = func(_ context.Context, key string, _ rowlock.Token, _ time.Duration) {
			if key == "a/y" {
				panic("y")
			}
		}
		c := tenant(t, Client(t, memstore.New(), cfg), "a", rowlock.Quota{Held: most})
		for range 2 {
			func() {
				defer func() { _ = recover() }()
				_, _ = c.LockAll(t.Context(), []string{"x", "y", "z"})
				t.Error("LockAll did not panic")
			}()
			synctest.Wait()
			wantCounted(t, c, 0)
		}
	})
}
