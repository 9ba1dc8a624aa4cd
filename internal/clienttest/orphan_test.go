package clienttest

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// The reply was lost, and the server runs the statement long after its sender gave up. The orphan
// cleaner releases what it leaves, again and again, until it can no longer come.
func TestUnknownOutcomeIsCleanedUp(t *testing.T) {
	unknown := fmt.Errorf("%w: connection reset", lease.ErrUnknown)
	for name, c := range map[string]struct {
		comes  time.Duration // when the server carries it out
		answer func() ([]lease.Acquired, error)
	}{
		"granted before the reply was lost": {
			0, func() ([]lease.Acquired, error) { return nil, unknown },
		},
		"granted 5 s later": {
			5 * time.Second, func() ([]lease.Acquired, error) { return nil, unknown },
		},
		"an error of the item": {
			0, func() ([]lease.Acquired, error) { return []lease.Acquired{{Err: unknown}}, nil },
		},
		"no answer at all": {0, func() ([]lease.Acquired, error) { return nil, nil }},
		"held, after a try whose reply was lost": {time.Second, func() ([]lease.Acquired, error) {
			return []lease.Acquired{{Unknown: true}}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				s.OnAcquire = func(_ context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					carryOut := func() { _, _ = s.Store.Acquire(context.Background(), reqs) }
					if c.comes == 0 {
						carryOut()
					} else {
						time.AfterFunc(c.comes, carryOut)
					}
					return c.answer()
				}
				locks := Client(t, s, nil)
				if l, err := locks.TryLock(t.Context(), "k"); err == nil {
					t.Fatalf("granted: %v", l)
				}
				time.Sleep(c.comes + time.Second)
				if r := Record(t, s, "k"); r.Token != 1 || r.Held {
					t.Errorf("a second after it was granted: %+v", r)
				}
				time.Sleep(10 * time.Second)
				_, _, releases := s.Calls()
				if releases < 10 || releases > 40 {
					t.Errorf("%d releases in the window", releases)
				}
				time.Sleep(time.Hour)
				if _, _, more := s.Calls(); more != releases {
					t.Errorf("%d releases after the window", more-releases)
				}
			})
		})
	}
}

func TestCleaningUpGoesOnWhileTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		began := time.Now()
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			_, _ = s.Store.Acquire(ctx, reqs)
			return nil, lease.ErrUnknown
		}
		s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			switch after := time.Since(began); {
			case after < 5*time.Second:
				return nil, ErrDown
			case after < 8*time.Second:
				<-ctx.Done() // a connection that hangs
				return nil, ctx.Err()
			case after < 12*time.Second:
				return []lease.Released{{Err: ErrDown}}, nil
			}
			return s.Store.Release(ctx, leases)
		}
		c := Client(t, s, nil)
		_, err := c.TryLock(t.Context(), "k")
		WantIs(t, "TryLock", err, rowlock.ErrUnknown)
		time.Sleep(13 * time.Second)
		if IsHeld(t, s, "k") {
			t.Error("a second after the store is back the key is held")
		}
	})
}

func TestCloseCleansUp(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		s.OnAcquire = func(_ context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			time.AfterFunc(10*time.Millisecond,
				func() { _, _ = s.Store.Acquire(context.Background(), reqs) })
			return nil, lease.ErrUnknown
		}
		_, err := c.TryLock(t.Context(), "k")
		WantIs(t, "TryLock", err, rowlock.ErrUnknown)
		time.Sleep(20 * time.Millisecond)
		if !IsHeld(t, s, "k") {
			t.Fatal("cleaned up already: the test shows nothing")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if IsHeld(t, s, "k") {
			t.Error("the key is held after Close")
		}
	})
}
