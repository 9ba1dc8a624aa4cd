package clienttest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// The next waiter is not held up by a LockAll that was woken at the key and needs another key
// too.
func TestLockAllLeavesAKeyToTheNextWaiterWhenAnotherIsHeld(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		a, b := Take(t, c, "a"), Take(t, c, "b")
		all := WaitAll(t, t.Context(), c, []string{"a", "b"})
		one := WaitIn(t, t.Context(), c, "a")
		freed := time.Now()
		Unlock(t, a)
		got := <-one
		if got.Err != nil || !time.Now().Equal(freed) {
			t.Fatalf("%v later: %v", time.Since(freed), got.Err)
		}
		Unlock(t, b)
		synctest.Wait()
		WantHolds(t, s, "a")
		Unlock(t, got.Lock)
		if got := <-all; got.Err != nil {
			t.Error(got.Err)
		}
	})
}

// When a set is released, waiters of this process are served, and those of other processes
// notified with one hint.
func TestUnlockOfAllWakesTheWaiters(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := TakeAll(t, c, "a", "b", "c")
		one, all := WaitIn(t, t.Context(), c, "a"), WaitAll(t, t.Context(), c, []string{"b", "c"})
		freed := time.Now()
		UnlockAll(t, l)
		first, second := <-one, <-all
		if first.Err != nil || second.Err != nil || !time.Now().Equal(freed) {
			t.Fatalf("%v later: %v, %v", time.Since(freed), first.Err, second.Err)
		}
		if _, _, releases := s.Calls(); releases != 3 {
			t.Errorf("%d leases were released", releases)
		}
	})
}

// The answer was lost: the outcome, all or none, is unknown. A moment later no key is held.
func TestAllOfUnknownOutcomeAreCleanedUp(t *testing.T) {
	for name, executed := range map[string]bool{"executed": true, "not executed": false} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				s.OnAcquireAll = func(ctx context.Context,
					reqs []lease.AcquireRequest,
				) ([]lease.Acquired, error) {
					if executed {
						_, _ = s.Store.AcquireAll(ctx, reqs)
					}
					return nil, fmt.Errorf("%w: connection lost", lease.ErrUnknown)
				}
				_, err := c.TryLockAll(t.Context(), []string{"a", "b"})
				WantIs(t, "TryLockAll", err, rowlock.ErrUnknown)
				synctest.Wait()
				WantHolds(t, s, "")
				if s.OnAcquireAll = nil; executed == (Record(t, s, "a").Token == 0) {
					t.Error("the script did not do what the test is about")
				}
			})
		})
	}
}

func TestAnAnswerThatCameTooLateIsNoLocks(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		s.OnAcquireAll = func(ctx context.Context,
			reqs []lease.AcquireRequest,
		) ([]lease.Acquired, error) {
			answers, err := s.Store.AcquireAll(ctx, reqs)
			time.Sleep(Trust)
			return answers, err
		}
		_, err := c.TryLockAll(t.Context(), []string{"a", "b", "c"})
		WantIs(t, "TryLockAll", err, rowlock.ErrLost)
		synctest.Wait()
		WantHolds(t, s, "")
	})
}

// A database that fails ends the wait; one that is overloaded does not.
func TestLockAllWaitsForABusyDatabaseOnly(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		n := 0
		s.OnAcquireAll = func(ctx context.Context,
			reqs []lease.AcquireRequest,
		) ([]lease.Acquired, error) {
			if n++; n < 4 {
				return nil, lease.ErrBusy
			}
			return s.Store.AcquireAll(ctx, reqs)
		}
		l, err := c.LockAll(t.Context(), []string{"a", "b"})
		if err != nil {
			t.Fatal(err)
		}
		UnlockAll(t, l)
		s.OnAcquireAll = func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) {
			return nil, ErrDown
		}
		_, err = c.LockAll(t.Context(), []string{"a", "b"})
		WantIs(t, "LockAll", err, ErrDown)
		s.OnAcquireAll = nil
		one := Take(t, c, "a")
		Unlock(t, one) // no waiter is left in the queue
		if len(s.HandOvers) > 0 {
			t.Errorf("handed over: %+v", s.HandOvers)
		}
	})
}

func TestMinHoldAndMaxHoldAreOfEach(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l, err := c.TryLockAll(t.Context(), []string{"a", "b"}, rowlock.MinHold(time.Minute),
			rowlock.MaxHold(time.Hour), rowlock.Note("both"))
		if err != nil {
			t.Fatal(err)
		}
		if r := Record(t, s, "b"); !hasNote(r, "both") || !lease.Lapses(r.Note) {
			t.Errorf("the note is %q", r.Note)
		}
		UnlockAll(t, l)
		time.Sleep(59 * time.Second)
		WantHolds(t, s, "a b")
		time.Sleep(time.Second)
		WantHolds(t, s, "")
		l, err = c.TryLockAll(t.Context(), []string{"a", "b"}, rowlock.MaxHold(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrMaxHold)
		synctest.Wait()
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
		WantHolds(t, s, "")
	})
}

// Many locks that were held too long are released in one call. With a call for each, Unlock would
// wait that many times for a store that hangs.
func TestUnlockOfAllPastMaxHoldDoesNotWaitForEach(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		var hangs atomic.Bool
		s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			if !hangs.Load() {
				return s.Store.Release(ctx, leases)
			}
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", rowlock.ErrUnknown, ctx.Err())
		}
		l, err := c.TryLockAll(t.Context(), []string{"a", "b", "c", "d"}, rowlock.MaxHold(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		<-l.Context().Done()
		synctest.Wait()
		hangs.Store(true)
		began := time.Now()
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		hangs.Store(false)
		time.Sleep(5 * time.Second) // and the client goes on trying
		WantHolds(t, s, "")
	})
}

// A store that grants keys one by one is made to grant all or none: what it granted is released,
// and the waiters for it are woken.
func TestAllNeedsNoAbilities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c, other := Client(t, Bare{s}, nil), Client(t, Bare{s}, nil)
		b := Take(t, other, "b")
		_, err := c.TryLockAll(t.Context(), []string{"a", "b", "c"})
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Key != "b" {
			t.Errorf("got %v", err)
		}
		WantHolds(t, s, "b")
		waiting := WaitAll(t, t.Context(), c, []string{"a", "b", "c"})
		Unlock(t, b)
		got := <-waiting
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		WantHolds(t, s, "a b c")
		UnlockAll(t, got.Locks)
		WantHolds(t, s, "")
	})
}

// A part whose outcome is unknown is cleaned up, and the other part is released.
func TestAPartThatFailedIsNoPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		c := Client(t, struct{ lease.Store }{s}, nil)
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.Acquire(ctx, reqs)
			answers[1] = lease.Acquired{Err: fmt.Errorf("%w: connection lost", lease.ErrUnknown)}
			return answers, err
		}
		_, err := c.TryLockAll(t.Context(), []string{"a", "b", "c"})
		WantIs(t, "TryLockAll", err, rowlock.ErrUnknown)
		synctest.Wait()
		WantHolds(t, s.Store, "")
	})
}

// In a fair client a set queues at each key, and keeps the keys that it was granted.
func TestAllOfAFairClientAreLockedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		cfg := &rowlock.Config{Fair: true}
		cfg.Reaper.Off = true
		c := Client(t, s, cfg)
		b := Take(t, c, "b")
		ctx, cancel := context.WithCancel(t.Context())
		leaves := WaitAll(t, ctx, c, []string{"c", "b", "a"}, rowlock.MinHold(time.Hour))
		WantHolds(t, s, "a b")
		cancel()
		WantIs(t, "LockAll", (<-leaves).Err, rowlock.ErrHeld, context.Canceled)
		WantHolds(t, s, "b")
		waiting := WaitAll(t, t.Context(), c, []string{"c", "b", "a"})
		late := WaitIn(t, t.Context(), c, "b")
		_, err := c.TryLockAll(t.Context(), []string{"b", "c"})
		WantIs(t, "TryLockAll", err, rowlock.ErrHeld)
		Unlock(t, b)
		got := <-waiting
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		WantHolds(t, s, "a b c")
		UnlockAll(t, got.Locks)
		if got := <-late; got.Err != nil {
			t.Error(got.Err)
		}
		if len(s.AcquireAlls) > 0 {
			t.Error("a fair client went past its queue")
		}
	})
}
