package clienttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// The answer comes while Close releases other locks.
func TestGrantWhileClosingLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.Acquire(ctx, reqs)
			time.Sleep(time.Second)
			return answers, err
		}
		s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			time.Sleep(time.Second)
			return s.Store.Release(ctx, leases)
		}
		c := Client(t, s, nil)
		Take(t, c, "other")
		done := make(chan Waited, 1)
		go func() {
			l, err := c.Lock(t.Context(), "k")
			done <- Waited{Lock: l, Err: err}
		}()
		time.Sleep(time.Second / 2)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		WantIs(t, "Lock", (<-done).Err, rowlock.ErrClosed)
		if IsHeld(t, s, "k") {
			t.Error("the key is held after Close")
		}
	})
}

// For the race detector: clients are opened and closed under load, and leave no key held.
func TestLockAndCloseAtOnce(t *testing.T) {
	for range 20 {
		s := NewScript()
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.Acquire(ctx, reqs)
			<-time.After(rand.N(time.Millisecond))
			return answers, err
		}
		cfg := &rowlock.Config{TTL: time.Hour, PollMin: time.Microsecond, PollMax: 100 * time.Microsecond}
		c := Client(t, s, cfg)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for {
					l, err := c.Lock(context.Background(), fmt.Sprint(rand.N(8)))
					if err != nil {
						WantIs(t, "Lock", err, rowlock.ErrClosed)
						return
					}
					if rand.N(4) > 0 {
						_ = l.Unlock(context.Background())
					}
					if rand.N(100) == 0 {
						return
					}
				}
			})
		}
		<-time.After(rand.N(5 * time.Millisecond))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		records, err := s.Inspect(t.Context(), lease.Filter{Held: true})
		if err != nil || len(records) > 0 {
			t.Errorf("held after Close: %+v, %v", records, err)
		}
		wg.Wait()
	}
}

// A deferred Unlock and Close run at the same time, as at the end of a program. Close waits for
// an Unlock that has begun.
func TestUnlockWhileClosingLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			time.Sleep(time.Second)
			return s.Store.Release(ctx, leases)
		}
		c := Client(t, s, nil)
		l := Take(t, c, "k")
		unlocked := make(chan error, 1)
		go func() { unlocked <- l.Unlock(t.Context()) }()
		time.Sleep(time.Second / 2)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if IsHeld(t, s, "k") {
			t.Error("the key is held after Close")
		}
		if err := <-unlocked; err != nil {
			t.Errorf("Unlock: %v", err)
		}
	})
}
