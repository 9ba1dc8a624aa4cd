package clienttest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// A span without a parent is of no use. Each hook gets the values of the call that it is about.
func TestHooksGetTheContextOfTheirCall(t *testing.T) {
	watched(t, rowlock.Config{}, func(t *testing.T, c *rowlock.Client, s *Script, e *events) {
		var down atomic.Bool
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if down.Load() {
				return nil, ErrDown
			}
			return s.Store.Renew(ctx, reqs)
		}
		l, err := c.Lock(named(t, "lock"), "k")
		WantIs(t, "Lock", err)
		_, _ = c.TryLock(named(t, "try"), "k")
		WantIs(t, "Unlock", l.Unlock(named(t, "unlock")))
		e.want(t, "acquired k 1 in lock", "contended k in try", "released k 1 in unlock")

		lost, err := c.Lock(named(t, "lock"), "k", rowlock.NoRenew())
		WantIs(t, "Lock", err)
		<-lost.Context().Done()
		e.want(t, "acquired k 2 in lock", "lost k 2 in lock")

		kept, err := c.LockAll(named(t, "lock all"), []string{"a", "b"})
		WantIs(t, "LockAll", err)
		time.Sleep(TTL / 3)
		e.want(t, "acquired a 1 in lock all", "acquired b 1 in lock all", "renewed 2 in ")
		WantIs(t, "Unlock", kept.Unlock(named(t, "unlock all")))
		e.want(t, "released a 1 in unlock all", "released b 1 in unlock all")

		_, err = c.Lock(named(t, "left to Close"), "k")
		WantIs(t, "Lock", err)
		time.Sleep(TTL / 3)
		down.Store(true)
		time.Sleep(TTL / 3)
		WantIs(t, "Close", c.Close())
		e.want(t, "acquired k 3 in left to Close", "renewed 1 in left to Close",
			"renewal failed 1 in left to Close", "released k 3 in left to Close")
	})
}

// A canceled ctx is what a deferred Unlock has. Its values still tell the parent.
func TestAFailedUnlockIsToldOf(t *testing.T) {
	watched(t, rowlock.Config{}, func(t *testing.T, c *rowlock.Client, s *Script, e *events) {
		var down atomic.Bool
		down.Store(true)
		s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			if down.Load() {
				return nil, ErrDown
			}
			return s.Store.Release(ctx, leases)
		}
		l := Take(t, c, "k")
		ctx, cancel := context.WithCancel(named(t, "unlock"))
		cancel()
		WantIs(t, "Unlock", l.Unlock(ctx), rowlock.ErrUnknown)
		e.want(t, "acquired k 1 in ", "unlock failed k 1, true in unlock", "released k 1 in unlock")
		if got := c.Stats(); got.UnlockFailed != 1 || got.OrphansOpen != 1 || got.Held != 0 {
			t.Errorf("after a failed Unlock: %+v", got)
		}
		down.Store(false)
		time.Sleep(time.Minute)
		if got := c.Stats(); got.OrphansOpen != 0 || got.OrphansCleaned != 1 || IsHeld(t, s, "k") {
			t.Errorf("a minute later: %+v", got)
		}
	})
}

// Every waiter sees each change of holder once, and none when it begins to wait.
func TestWaitersSeeTheHolderChange(t *testing.T) {
	for name, fair := range map[string]bool{"": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			watched(t, rowlock.Config{Fair: fair},
				func(t *testing.T, c *rowlock.Client, s *Script, e *events) {
					first := Another(t, s, "k", time.Hour)
					WaitIn(t, named(t, "first"), c, "k")
					WaitIn(t, named(t, "second"), c, "k")
					time.Sleep(time.Second)
					e.mu.Lock()
					for _, event := range e.all {
						if !strings.HasPrefix(event, "contended ") {
							t.Errorf("while the holder was the same: %s", event)
						}
					}
					e.all = nil
					e.mu.Unlock()
					if _, err := s.Store.Release(t.Context(), []lease.Lease{first}); err != nil {
						t.Fatal(err)
					}
					Another(t, s, "k", time.Hour) // before a poll
					time.Sleep(time.Second)
					synctest.Wait()
					e.mu.Lock()
					slices.Sort(e.all)
					e.mu.Unlock()
					e.want(t, "holder of k is another 2 in first", "holder of k is another 2 in second")
					time.Sleep(time.Minute)
					e.want(t)
				})
		})
	}
}

// A lease that ran out is a process that died. A key that was released is none.
func TestAWaiterSeesThatALeaseRanOut(t *testing.T) {
	for name, fair := range map[string]bool{"": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			watched(t, rowlock.Config{Fair: fair},
				func(t *testing.T, c *rowlock.Client, s *Script, e *events) {
					Another(t, s, "k", 5*time.Second)
					w := <-WaitIn(t, named(t, "wait"), c, "k")
					WantIs(t, "Lock", w.Err)
					Unlock(t, w.Lock)
					e.want(t, "contended k in wait", "expired k of another 1, true in wait",
						"acquired k 2 in wait", "released k 2 in ")

					other := Another(t, s, "k", time.Hour)
					done := WaitIn(t, named(t, "wait"), c, "k")
					time.Sleep(time.Second)
					if _, err := s.Store.Release(t.Context(), []lease.Lease{other}); err != nil {
						t.Fatal(err)
					}
					w = <-done
					WantIs(t, "Lock", w.Err)
					Unlock(t, w.Lock)
					e.want(t, "contended k in wait", "acquired k 4 in wait", "released k 4 in ")
				})
		})
	}
}

// A lease that is left to run out is no process that died, to those that wait for the key.
func TestTheEndOfAMinHoldIsNoLeaseThatRanOut(t *testing.T) {
	for name, fair := range map[string]bool{"": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			watched(t, rowlock.Config{Fair: fair},
				func(t *testing.T, c *rowlock.Client, s *Script, e *events) {
					other := Client(t, s, nil)
					l, err := other.TryLock(t.Context(), "k", rowlock.MinHold(5*time.Second), rowlock.Note("tick"))
					WantIs(t, "TryLock", err)
					Unlock(t, l)
					w := <-WaitIn(t, named(t, "wait"), c, "k")
					WantIs(t, "Lock", w.Err)
					Unlock(t, w.Lock)
					e.want(t, "contended k in wait", "acquired k 2 in wait", "released k 2 in ")
				})
		})
	}
}

// A lease that expires while its row is locked is told of once, however often the waiter asks.
func TestALeaseThatRanOutIsToldOfOnce(t *testing.T) {
	watched(t, rowlock.Config{}, func(t *testing.T, c *rowlock.Client, s *Script, e *events) {
		Another(t, s.Store, "k", 5*time.Second)
		var locked atomic.Bool
		locked.Store(true)
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if locked.Load() {
				return []lease.Acquired{{Holder: lease.Holder{Note: "another"}, Locked: true}}, nil
			}
			return s.Store.Acquire(ctx, reqs)
		}
		done := WaitIn(t, named(t, "wait"), c, "k")
		time.Sleep(10 * time.Second)
		locked.Store(false)
		w := <-done
		WantIs(t, "Lock", w.Err)
		n := 0
		e.mu.Lock()
		for _, event := range e.all {
			if event == "expired k of another 1, true in wait" {
				n++
			}
		}
		e.all = nil
		e.mu.Unlock()
		if n != 1 {
			t.Errorf("Expired was called %d times", n)
		}
	})
}

// 10,000 locks cost a call of the hook for each statement, and not for each lock.
func TestRenewedIsCalledOnceForEachStatement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, leases := 0, 0
		cfg := &rowlock.Config{Logger: slog.New(slog.DiscardHandler)}
		cfg.Reaper.Off = true
		cfg.Hooks.Renewed = func(_ context.Context, n int, _ time.Duration) { calls++; leases += n }
		c := Client(t, NewScript(), cfg)
		const locks = 10_000
		for i := range locks {
			Take(t, c, fmt.Sprint(i))
		}
		time.Sleep(TTL / 3)
		synctest.Wait()
		if leases != locks || calls > locks/500+2 {
			t.Errorf("%d leases in %d calls", leases, calls)
		}
		if s := c.Stats(); s.Renewed != locks || s.Renewals != int64(calls) || s.Held != locks {
			t.Errorf("%d calls: %+v", calls, s)
		}
	})
}
