package clienttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// If a store's clock is set forward while a request is under way, the lease that it grants has
// ended. The answer was quick, and the error must not claim otherwise.
func TestGrantDuringAClockStepSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		var ahead atomic.Int64
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			answers, err := s.Store.Renew(ctx, reqs)
			for i := range answers {
				answers[i].Clock = time.Duration(time.Now().UnixNano() + ahead.Load())
			}
			return answers, err
		}
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if reqs[0].Key == "k" {
				ahead.Store(int64(time.Hour))
				time.Sleep(TTL / 3) // one renewal of the other lock
			}
			return s.Store.Acquire(ctx, reqs)
		}
		locks := Client(t, s, nil)
		Take(t, locks, "other")
		time.Sleep(TTL / 2)
		_, err := locks.TryLock(t.Context(), "k")
		WantIs(t, "TryLock", err, rowlock.ErrLost)
		if err == nil || !strings.Contains(err.Error(), "the store's clock ran ahead by 1h0m0s") {
			t.Errorf("TryLock: %v", err)
		}
	})
}

// The answer came when the lease had almost ended: a holder could not rely on it for a moment.
func TestSlowGrantIsNotHandedOut(t *testing.T) {
	for _, c := range []struct {
		answered time.Duration
		want     error
	}{{Trust - 1, nil}, {Trust, rowlock.ErrLost}} {
		t.Run(fmt.Sprintf("answered after %v", c.answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				var slow atomic.Bool
				s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					answers, err := s.Store.Acquire(ctx, reqs)
					if slow.Load() {
						time.Sleep(c.answered)
					}
					return answers, err
				}
				locks := Client(t, s, nil)
				other := Take(t, locks, "other")
				slow.Store(true)
				l, err := locks.TryLock(t.Context(), "k")
				if !errors.Is(err, c.want) {
					t.Errorf("TryLock: %v", err)
				}
				if c.want != nil {
					synctest.Wait()
					if l != nil || IsHeld(t, s, "k") {
						t.Errorf("TryLock: %v; the key is held: %t", l, IsHeld(t, s, "k"))
					}
				}
				time.Sleep(10 * TTL)
				WantAlive(t, other)
			})
		})
	}
}

func TestErrorOfTheStoreIsReturned(t *testing.T) {
	for name, answer := range map[string]func() ([]lease.Acquired, error){
		"of the call": func() ([]lease.Acquired, error) { return nil, ErrDown },
		"of the item": func() ([]lease.Acquired, error) {
			return []lease.Acquired{{Err: ErrDown, Granted: true}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				s.OnAcquire = func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) {
					return answer()
				}
				c := Client(t, s, nil)
				_, err := c.TryLock(t.Context(), "k")
				WantIs(t, "TryLock", err, ErrDown)
				_, err = c.Lock(t.Context(), "k") // waits for keys, not for databases
				WantIs(t, "Lock", err, ErrDown)
				time.Sleep(time.Minute)
				if _, _, releases := s.Calls(); releases != 0 {
					t.Errorf("%d releases of what was certainly not granted", releases)
				}
			})
		})
	}
}
