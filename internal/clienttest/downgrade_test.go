package clienttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// slowDowngrades has each Downgrade wait before and after it is carried out, whatever its ctx says.
func slowDowngrades(s *Script, before, after time.Duration) {
	s.OnDowngrade = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		time.Sleep(before)
		defer time.Sleep(after)
		return s.Store.Downgrade(context.WithoutCancel(ctx), reqs)
	}
}

// long is a client whose leases do not run out while a test looks for what is left of them.
func long(t *testing.T, s lease.Store) *rowlock.Client {
	cfg := &rowlock.Config{TTL: time.Hour}
	cfg.Reaper.Off = true
	return Client(t, s, cfg)
}

func wantFree(t *testing.T, s lease.Store, what string) {
	t.Helper()
	if r := Record(t, s, "k"); r.Held {
		t.Errorf("%s: the key is held for %v more by %d members", what, r.Remaining, r.Members)
	}
}

// No other owner is granted the key while the context of one that hangs in Downgrade lives.
func TestALockEndsInTimeWhileItsDowngradeHangs(t *testing.T) {
	for name, c := range map[string]struct {
		opt   rowlock.Option
		after time.Duration
		cause error
	}{
		"at its deadline": {rowlock.Note(""), Trust, rowlock.ErrLost},
		"by MaxHold":      {rowlock.MaxHold(10 * time.Second), 10 * time.Second, rowlock.ErrMaxHold},
		"by MaxIdle":      {rowlock.MaxIdle(10 * time.Second), 10 * time.Second, rowlock.ErrIdle},
	} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c1 *rowlock.Client, s *Script) {
				slowDowngrades(s, time.Hour, 0)
				began := time.Now()
				l := Take(t, c1, "k", c.opt)
				done := make(chan error, 1)
				go func() { done <- l.Downgrade(t.Context()) }()
				WantEnd(t, l, began, c.after, c.cause)
				if err := l.Unlock(t.Context()); !errors.Is(err, c.cause) {
					t.Errorf("Unlock: %v", err)
				}
				time.Sleep(time.Second)
				wantFree(t, s, "after Unlock")
				WantIs(t, "Downgrade", <-done, c.cause)
			})
		})
	}
}

// Whenever Unlock, Close, or a forced release comes, nothing is left of the lock: not the exclusive
// lease, and no member that is renewed for ever.
func TestAnEndDuringDowngradeLeavesNothing(t *testing.T) {
	for name, end := range map[string]func(*rowlock.Client, *rowlock.Lock) error{
		"Unlock":    func(_ *rowlock.Client, l *rowlock.Lock) error { return l.Unlock(context.Background()) },
		"UnlockNow": func(_ *rowlock.Client, l *rowlock.Lock) error { return l.UnlockNow(context.Background()) },
		"Close":     func(c *rowlock.Client, _ *rowlock.Lock) error { return c.Close() },
		"a forced release": func(c *rowlock.Client, l *rowlock.Lock) error {
			_, err := c.ForceRelease(context.Background(), "k", rowlock.Force{Reason: "test"})
			return err
		},
	} {
		for _, slow := range [][2]time.Duration{
			{100 * time.Millisecond, 100 * time.Millisecond}, {5 * time.Second, 0}, {0, 5 * time.Second},
		} {
			t.Run(fmt.Sprintf("%s, %v", name, slow), func(t *testing.T) {
				for _, at := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond} {
					synctest.Test(t, func(t *testing.T) {
						s := NewScript()
						c := long(t, s)
						l := Take(t, c, "k")
						slowDowngrades(s, slow[0], slow[1])
						var call sync.WaitGroup
						call.Go(func() { _ = l.Downgrade(t.Context()) })
						synctest.Wait()
						time.Sleep(at)
						soon := slow[0]+slow[1] < time.Second // the end waits for it, and knows the outcome
						if err := end(c, l); err != nil && (soon || !errors.Is(err, rowlock.ErrUnknown)) {
							t.Errorf("at %v: %v", at, err)
						}
						call.Wait()
						if name == "a forced release" {
							time.Sleep(time.Hour) // the lock is lost at its next renewal
						}
						_ = l.Unlock(t.Context())
						time.Sleep(10 * time.Second)
						wantFree(t, s, fmt.Sprint("at ", at))
						if n := c.Stats(); n.Held != 0 || n.Acquired != n.Released+n.Lost {
							t.Errorf("at %v: %+v", at, n)
						}
					})
				}
			})
		}
	}
}

// After an unknown outcome the lock is lost, and neither of what it may have become is left.
func TestADowngradeOfUnknownOutcomeIsCleanedUp(t *testing.T) {
	unknown := fmt.Errorf("%w: connection reset", lease.ErrUnknown)
	for name, carried := range map[string]func(run func()){
		"carried out":           func(run func()) { run() },
		"not carried out":       func(func()) {},
		"carried out 5 s later": func(run func()) { time.AfterFunc(5*time.Second, run) },
	} {
		for _, closes := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, Close %t", name, closes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := NewScript()
					c := long(t, s)
					l := Take(t, c, "k")
					s.OnDowngrade = func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
						carried(func() { _, _ = s.Store.Downgrade(context.Background(), reqs) })
						return nil, unknown
					}
					WantIs(t, "Downgrade", l.Downgrade(t.Context()), rowlock.ErrUnknown)
					WantIs(t, "the lock's context", context.Cause(l.Context()), rowlock.ErrLost)
					if closes {
						if err := c.Close(); err != nil {
							t.Error(err)
						}
					}
					time.Sleep(10 * time.Second)
					wantFree(t, s, "10 s later")
					WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
				})
			})
		}
	}
}

func TestADowngradeThatChangesNothingLeavesTheLockAsItWas(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		s.OnDowngrade = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			time.Sleep(20 * time.Second) // a renewal is due meanwhile
			return []lease.Renewed{{Err: lease.ErrBusy}}, nil
		}
		WantIs(t, "Downgrade", l.Downgrade(t.Context()), rowlock.ErrBusy)
		time.Sleep(10 * TTL)
		WantAlive(t, l)
		_, err := c.TryRLock(t.Context(), "k")
		WantIs(t, "a reader beside it", err, rowlock.ErrHeld)
		s.OnDowngrade = nil // no call is under way
		if err := l.Downgrade(t.Context()); err != nil {
			t.Error(err)
		}
		drop(t, share(t, c, "k"))
		Unlock(t, l)
		wantFree(t, s, "after Unlock")
	})
}

// A renewal that was sent before, and is answered after, is about a lease that is no more.
func TestARenewalThatADowngradeOvertakesEndsNothing(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		var once sync.Once
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			once.Do(func() { time.Sleep(3 * time.Second) })
			return s.Store.Renew(ctx, reqs)
		}
		l := Take(t, c, "k")
		time.Sleep(TTL/3 + time.Millisecond) // it is under way
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * TTL)
		WantAlive(t, l)
		drop(t, share(t, c, "k"))
	})
}

// An exclusive handle and a reader at the same time would be two owners.
func TestAReentrantCallWaitsForADowngrade(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		slowDowngrades(s, 100*time.Millisecond, 0)
		done := make(chan error, 1)
		go func() { done <- l.Downgrade(t.Context()) }()
		time.Sleep(50 * time.Millisecond)
		_, err := c.Lock(l.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock", err, rowlock.ErrUpgrade)
		_, err = c.LockAny(l.Context(), []string{"k"}, rowlock.Reentrant())
		WantIs(t, "LockAny", err, rowlock.ErrUpgrade)
		WantIs(t, "Downgrade", <-done)
		again, err := c.RLock(l.Context(), "k", rowlock.Reentrant())
		WantIs(t, "RLock", err)
		drop(t, again)
		WantAlive(t, l)
	})
}

// For the race detector.
func TestDowngradeBesideEverythingElse(t *testing.T) {
	c := Client(t, NewScript(), nil)
	for range 100 {
		l := Take(t, c, "k", rowlock.MaxIdle(time.Minute))
		var others sync.WaitGroup
		for _, f := range []func(){
			func() { _ = l.Deadline() },
			func() { _ = l.Progress() },
			func() {
				if n, err := c.TryLock(l.Context(), "k", rowlock.Reentrant()); err == nil {
					_ = n.Unlock(context.Background())
				}
			},
			func() { _ = l.Downgrade(context.Background()) },
		} {
			others.Go(func() {
				for range 20 {
					f()
				}
			})
		}
		_ = l.Downgrade(context.Background())
		others.Wait()
		_ = l.Unlock(context.Background())
	}
}
