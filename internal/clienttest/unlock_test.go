package clienttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// The lease was taken over, and the watchdog has not yet noticed.
func TestUnlockNoticesTheLoss(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		s.Expire("k")
		other := Another(t, s, "k", TTL)
		WantAlive(t, l)
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		if r := Record(t, s, "k"); r.Lease != other {
			t.Errorf("Unlock of a lost lock left %+v, want %+v", r, other)
		}
	})
}

// The database cannot be reached: Unlock returns an error in time, and the client goes on in the
// background.
func TestUnlockThatFailsIsRetriedInTheBackground(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", lease.ErrUnknown, ctx.Err())
	}
	for name, c := range map[string]struct {
		fail func(context.Context) ([]lease.Released, error)
		want error
		took time.Duration
	}{
		"the call fails": {
			func(context.Context) ([]lease.Released, error) { return nil, ErrDown }, rowlock.ErrUnknown, 0,
		},
		"the item fails": {
			func(context.Context) ([]lease.Released, error) { return []lease.Released{{Err: ErrDown}}, nil },
			rowlock.ErrUnknown, 0,
		},
		"it hangs": {
			func(ctx context.Context) ([]lease.Released, error) { return nil, hang(ctx) },
			rowlock.ErrUnknown, 2 * time.Second,
		},
		"no answer": {
			func(context.Context) ([]lease.Released, error) { return nil, nil }, rowlock.ErrUnknown, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				back := time.Now().Add(3 * time.Second)
				s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
					if time.Now().Before(back) {
						return c.fail(ctx)
					}
					return s.Store.Release(ctx, leases)
				}
				locks := Client(t, s, nil)
				l := Take(t, locks, "k")
				began := time.Now()
				WantIs(t, "Unlock", l.Unlock(t.Context()), c.want)
				if took := time.Since(began); took < c.took || took > c.took*5/4 {
					t.Errorf("took %v, want %v, or up to a quarter more", took, c.took)
				}
				WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
				time.Sleep(5 * time.Second)
				if IsHeld(t, s, "k") {
					t.Error("the key is held although the store is back")
				}
			})
		})
	}
}

// A copy of the acquire may arrive after the lock was released.
func TestUnlockOfAGrantOfUnknownOutcomeCleansUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			time.AfterFunc(3*time.Second, func() { _, _ = s.Store.Acquire(context.Background(), reqs) })
			answers, err := s.Store.Acquire(ctx, reqs)
			answers[0].Unknown = true
			return answers, err
		}
		c := Client(t, s, nil)
		if err := Take(t, c, "k").Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(4 * time.Second)
		if r := Record(t, s, "k"); r.Token != 2 || r.Held {
			t.Errorf("after the copy came: %+v", r)
		}
	})
}

// For the race detector: of many calls of Unlock one releases the lock. The other calls return
// that it was released, even while that is under way.
func TestUnlocksAtOnce(t *testing.T) {
	c := Client(t, NewScript(), nil)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	// keeps the watchdog and the client at work, so that ending a lock takes a moment
	for g := range 4 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = Take(t, c, fmt.Sprint("busy ", g)).Unlock(context.Background())
				}
			}
		})
	}
	for range 300 {
		l := Take(t, c, "k")
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() { errs <- l.Unlock(context.Background()) }()
		}
		done := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				done++
			} else {
				WantIs(t, "Unlock", err, rowlock.ErrUnlocked)
			}
		}
		if done != 1 {
			t.Errorf("%d calls say that they released it", done)
		}
	}
	close(stop)
	busy.Wait()
}
