package clienttest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// panicking is a store whose driver panics once.
type panicking struct {
	*memstore.Store
	in atomic.Pointer[string]
}

func (p *panicking) check(what string) {
	if at := p.in.Load(); at != nil && *at == what && p.in.CompareAndSwap(at, nil) {
		panic("a driver's, in " + what)
	}
}

func (p *panicking) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	p.check("HandOver")
	return p.Store.HandOver(ctx, items)
}

func (p *panicking) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	p.check("Release")
	return p.Store.Release(ctx, leases)
}

func (p *panicking) Pass(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
	p.check("Pass")
	return p.Store.Pass(ctx, leases)
}

// unlocks has the driver panic in the holder's Unlock, whose program recovers. waits says that the
// next owner does already, and holds how long: after a second the hand-over budget is spent. It
// fails unless that owner has the key long before the lease would expire.
func unlocks(t *testing.T, what string, fair, waits bool, holds time.Duration) {
	store := &panicking{Store: memstore.New()}
	c := Client(t, store, &rowlock.Config{
		TTL: TTL, Fair: fair, HandOvers: 1, Logger: slog.New(slog.DiscardHandler),
		Reaper: rowlock.ReaperConfig{Off: true},
	})
	held, err := c.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	done, unlocked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if !waits {
			<-unlocked
		}
		free(t, c, "k")
	}()
	synctest.Wait()
	time.Sleep(holds)
	store.in.Store(&what)
	panics(t, func() { _ = held.Unlock(t.Context()) })
	close(unlocked)
	<-done
}

func TestADriverThatPanicsInUnlockForgetsNoWaiter(t *testing.T) {
	for what, fair := range map[string]bool{"HandOver": false, "Pass": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { unlocks(t, what, fair, true, 0) })
		})
	}
}

// The waiters of this process let those of others ask first, once the release is over.
func TestADriverThatPanicsInUnlockPastTheBudgetForgetsNoWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { unlocks(t, "Release", false, true, time.Second) })
}

func TestADriverThatPanicsInUnlockLeavesNoLease(t *testing.T) {
	for what, fair := range map[string]bool{"Release": false, "Pass": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { unlocks(t, what, fair, false, 0) })
		})
	}
}

// The driver panics with the answer: the caller is a member of the reader group, and has no lock.
func TestADriverThatPanicsWithTheAnswerLeavesNoMember(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		shared, err := Client(t, s.Store, nil).RLock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		s.OnShare = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if answers, err := s.Store.Share(ctx, reqs); err != nil || !answers[0].Granted {
				t.Errorf("share: %+v, %v", answers, err)
			}
			s.OnShare = nil
			panic("a driver's")
		}
		panics(t, func() { _, _ = c.RLock(t.Context(), "k") })
		if err := shared.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		free(t, c, "k")
	})
}

// As above, of a key that was free: the call has made a reader group of it, or was about to.
func TestADriverThatPanicsInADowngradeLeavesNoGroup(t *testing.T) {
	for _, made := range []bool{false, true} {
		Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
			s.OnDowngrade = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
				s.OnDowngrade = nil
				if made {
					_, _ = s.Store.Downgrade(ctx, reqs)
				}
				panic("a driver's")
			}
			panics(t, func() { _, _ = c.RLock(t.Context(), "k") })
			free(t, c, "k")
		})
	}
}
