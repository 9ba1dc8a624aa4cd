package rowlock_test

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

func TestLockWaitsForUnlock(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		first := take(t, c, "k")
		waiting := wait(t, c, "k")
		time.Sleep(10 * ttl)
		unlocked := time.Now()
		if err := first.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := <-waiting
		if got.err != nil {
			t.Fatal(got.err)
		}
		if took := time.Since(unlocked); took > 375*time.Millisecond { // PollMax and its jitter
			t.Errorf("got it %v after it was free", took)
		}
	})
}

// waited is what became of a call that waited.
type waited struct {
	l   *rowlock.Lock
	err error
}

// wait has another goroutine wait for a key, and returns when it does.
func wait(t *testing.T, c *rowlock.Client, key string, opts ...rowlock.Option) <-chan waited {
	t.Helper()
	return waitIn(t, t.Context(), c, key, opts...)
}

func waitIn(t *testing.T, ctx context.Context, c *rowlock.Client, key string, opts ...rowlock.Option) <-chan waited {
	t.Helper()
	done := make(chan waited, 1)
	go func() {
		l, err := c.Lock(ctx, key, opts...)
		done <- waited{l, err}
	}()
	synctest.Wait()
	if len(done) > 0 {
		t.Fatalf("did not wait: %+v", <-done)
	}
	return done
}

// The holder is dead. The waiter does not sleep far past the expiry of which it was told.
func TestLockTakesOverFromADeadHolder(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		dead := another(t, s, "k", ttl)
		began := time.Now()
		l, err := c.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < ttl || took > ttl+20*time.Millisecond { // PollMin and its jitter
			t.Errorf("took over after %v of a lease of %v", took, ttl)
		}
		if l.Token() <= dead.Token {
			t.Errorf("token %d after %d", l.Token(), dead.Token)
		}
	})
}

func TestCancelledWaitSaysBoth(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		take(t, c, "k", rowlock.Note("somebody"))
		began := time.Now()

		ctx, cancel := context.WithTimeout(t.Context(), 100*ttl+1)
		defer cancel()
		_, err := c.Lock(ctx, "k")
		wantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded)
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("not one line: %q", err)
		}
		if took := time.Since(began); took != 100*ttl+1 {
			t.Errorf("returned after %v", took)
		}
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Note != "somebody" || held.Remaining <= 0 {
			t.Errorf("of the holder it says %#v", held)
		}

		ctx, cancel = context.WithCancel(t.Context())
		waiting := waitIn(t, ctx, c, "k")
		cancel()
		wantIs(t, "Lock", (<-waiting).err, rowlock.ErrHeld, context.Canceled)
	})
}

// The store is being asked when the waiter's patience ends; what is known of the holder is still said.
func TestWaitCancelledDuringALookSaysBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		var looks atomic.Int32
		s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if looks.Add(1) < 2 {
				return s.Store.Acquire(ctx, reqs)
			}
			<-ctx.Done()
			return nil, fmt.Errorf("%w: acquire: %w", lease.ErrUnknown, ctx.Err())
		}
		c := client(t, s, nil)
		another(t, s.Store, "k", 30*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := c.Lock(ctx, "k")
		wantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded, rowlock.ErrUnknown)
	})
}

// The look outlasts the waiter's patience and finds the key held.
func TestWaitCancelledDuringALookThatFindsAHolderSaysBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.acquire = func(_ context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			time.Sleep(20 * time.Second)
			return s.Store.Acquire(context.Background(), reqs)
		}
		c := client(t, s, nil)
		another(t, s.Store, "k", time.Hour)
		for _, patience := range []time.Duration{10 * time.Second, 30 * time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			_, err := c.Lock(ctx, "k")
			cancel()
			wantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded)
		}
	})
}

// A store's clock that is set forward while a request is under way ends the lease that it grants. The
// answer was quick, and the error does not say otherwise.
func TestGrantDuringAClockStepSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		var ahead atomic.Int64
		s.renew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			answers, err := s.Store.Renew(ctx, reqs)
			for i := range answers {
				answers[i].Clock = time.Duration(time.Now().UnixNano() + ahead.Load())
			}
			return answers, err
		}
		s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if reqs[0].Key == "k" {
				ahead.Store(int64(time.Hour))
				time.Sleep(ttl / 3) // one renewal of the other lock
			}
			return s.Store.Acquire(ctx, reqs)
		}
		locks := client(t, s, nil)
		take(t, locks, "other")
		time.Sleep(ttl / 2)
		_, err := locks.TryLock(t.Context(), "k")
		wantIs(t, "TryLock", err, rowlock.ErrLost)
		if err == nil || !strings.Contains(err.Error(), "the store's clock ran ahead by 1h0m0s") {
			t.Errorf("TryLock: %v", err)
		}
	})
}

// The answer came when the lease was as good as over: whoever got the lock could not rely on it for a moment.
func TestSlowGrantIsNotHandedOut(t *testing.T) {
	for _, c := range []struct {
		answered time.Duration
		want     error
	}{{trust - 1, nil}, {trust, rowlock.ErrLost}} {
		t.Run(fmt.Sprintf("answered after %v", c.answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				var slow atomic.Bool
				s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					answers, err := s.Store.Acquire(ctx, reqs)
					if slow.Load() {
						time.Sleep(c.answered)
					}
					return answers, err
				}
				locks := client(t, s, nil)
				other := take(t, locks, "other")
				slow.Store(true)
				l, err := locks.TryLock(t.Context(), "k")
				if !errors.Is(err, c.want) {
					t.Errorf("TryLock: %v", err)
				}
				if c.want != nil {
					synctest.Wait()
					if l != nil || isHeld(t, s, "k") {
						t.Errorf("TryLock: %v; the key is held: %t", l, isHeld(t, s, "k"))
					}
				}
				time.Sleep(10 * ttl)
				alive(t, other)
			})
		})
	}
}

func TestErrorOfTheStoreIsReturned(t *testing.T) {
	for name, answer := range map[string]func() ([]lease.Acquired, error){
		"of the call": func() ([]lease.Acquired, error) { return nil, errDown },
		"of the item": func() ([]lease.Acquired, error) { return []lease.Acquired{{Err: errDown, Granted: true}}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.acquire = func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) { return answer() }
				c := client(t, s, nil)
				_, err := c.TryLock(t.Context(), "k")
				wantIs(t, "TryLock", err, errDown)
				_, err = c.Lock(t.Context(), "k") // waits for keys, not for databases
				wantIs(t, "Lock", err, errDown)
				time.Sleep(time.Minute)
				if _, _, releases := s.asked(); releases != 0 {
					t.Errorf("%d releases of what was certainly not granted", releases)
				}
			})
		})
	}
}
