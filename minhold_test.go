package rowlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A scheduler that comes a little late finds the key held, and not free again.
func TestAnEarlyUnlockKeepsTheKeyForMinHold(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k", rowlock.MinHold(2*ttl))
		time.Sleep(ttl / 2)
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "the lock's context", context.Cause(l.Context()), rowlock.ErrUnlocked)
		time.Sleep(3*ttl/2 - time.Millisecond)
		if !isHeld(t, s, "k") {
			t.Error("free before MinHold was over")
		}
		time.Sleep(2 * time.Millisecond)
		if isHeld(t, s, "k") {
			t.Error("held after MinHold was over")
		}
		take(t, c, "k")
	})
}

func TestAnUnlockAfterMinHoldFreesTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k", rowlock.MinHold(ttl))
		time.Sleep(2 * ttl)
		if err := l.Unlock(t.Context()); err != nil || isHeld(t, s, "k") {
			t.Errorf("unlock: %v, held %t", err, isHeld(t, s, "k"))
		}
	})
}

func TestAWaiterGetsAKeyWhenItsMinHoldIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, _ *script) {
		began := time.Now()
		if err := take(t, c, "k", rowlock.MinHold(3*ttl)).Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := c.Lock(t.Context(), "k")
		if took := time.Since(began); err != nil || took < 3*ttl || took > 4*ttl {
			t.Errorf("waited %v of %v: %v", took, 3*ttl, err)
		}
		_ = l.Unlock(t.Context())
	})
}

func TestCloseKeepsMinHold(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		take(t, c, "k", rowlock.MinHold(ttl))
		take(t, c, "other")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !isHeld(t, s, "k") || isHeld(t, s, "other") {
			t.Errorf("after Close: held %t, the other %t", isHeld(t, s, "k"), isHeld(t, s, "other"))
		}
	})
}

func TestALostLockWithMinHoldSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k", rowlock.MinHold(ttl))
		r := record(t, s, "k")
		if _, err := s.Release(t.Context(), []lease.Lease{r.Lease}); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "unlock", l.Unlock(t.Context()), rowlock.ErrLost)
	})
}

func TestMinHoldIsChecked(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, _ *script) {
		for _, opts := range [][]rowlock.Option{
			{rowlock.MinHold(0)},
			{rowlock.MinHold(-1)},
			{rowlock.MinHold(time.Minute), rowlock.MaxHold(time.Second)},
			{rowlock.MaxHold(time.Second), rowlock.MinHold(time.Minute)},
		} {
			_, err := c.TryLock(t.Context(), "k", opts...)
			wantIs(t, "TryLock", err, rowlock.ErrConfig)
		}
	})
}

func TestMinHoldInTheDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		c, err := rowlock.Open(e.DB, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l := take(t, c, "k", rowlock.MinHold(time.Hour))
		tx, err := e.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		wantIs(t, "UnlockTx", l.UnlockTx(t.Context(), tx), rowlock.ErrConfig)
		_ = tx.Rollback()
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		var held *rowlock.HeldError
		if _, err := c.TryLock(t.Context(), "k"); !errors.As(err, &held) || held.Remaining < 59*time.Minute || held.Remaining > time.Hour {
			t.Errorf("TryLock after unlock: %v", err)
		}
		e.Expire(t, "k")
		take(t, c, "k")
	})
}

// A slow answer does not eat into MinHold: it counts from the grant, which may have come just before the answer.
func TestMinHoldCountsFromTheGrant(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			time.Sleep(ttl / 3)
			return s.Store.Acquire(ctx, reqs)
		}
		l := take(t, c, "k", rowlock.MinHold(ttl))
		time.Sleep(ttl - time.Second)
		if err := l.Unlock(t.Context()); err != nil || !isHeld(t, s, "k") {
			t.Errorf("a second before MinHold is over: %v, held %t", err, isHeld(t, s, "k"))
		}
	})
}

// unlocker is what a Lock and Locks have in common.
type unlocker interface {
	Context() context.Context
	Unlock(ctx context.Context) error
}

// A lock whose MaxHold is over has a MinHold still if the answer was slow, since one counts from the request and the other from the grant.
func TestAnUnlockAfterMaxHoldKeepsMinHold(t *testing.T) {
	for name, lock := range map[string]func(context.Context, *rowlock.Client) (unlocker, error){
		"one": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
			return c.TryLock(ctx, "k", rowlock.MinHold(ttl), rowlock.MaxHold(ttl))
		},
		"all": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
			return c.TryLockAll(ctx, []string{"k"}, rowlock.MinHold(ttl), rowlock.MaxHold(ttl))
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
				s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					time.Sleep(time.Second)
					return s.Store.Acquire(ctx, reqs)
				}
				s.all = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					time.Sleep(time.Second)
					return s.Store.AcquireAll(ctx, reqs)
				}
				l, err := lock(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				<-l.Context().Done()
				synctest.Wait()
				wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
				if !isHeld(t, s, "k") {
					t.Error("free before MinHold was over")
				}
			})
		})
	}
}

// Nothing may free the key before its time: not an error, and not the client's cleaning up.
func TestAnUnlockThatFailedKeepsTheKeyForItsLease(t *testing.T) {
	for name, renew := range map[string]func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error){
		"the call": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) { return nil, errDown },
		"the answer": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return []lease.Renewed{{Err: errDown}}, nil
		},
		"no answer": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
				l := take(t, c, "k", rowlock.MinHold(ttl))
				s.renew = renew
				wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
				time.Sleep(ttl - time.Millisecond)
				if !isHeld(t, s, "k") {
					t.Error("free before its lease has ended")
				}
				time.Sleep(2 * time.Millisecond)
				if _, _, releases := s.asked(); releases > 0 || isHeld(t, s, "k") {
					t.Errorf("%d releases, held %t", releases, isHeld(t, s, "k"))
				}
			})
		})
	}
}

// A database that does not answer holds Close up once, not once for each key.
func TestCloseLeavesManyKeysInOneCall(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		s.renew = func(ctx context.Context, _ []lease.RenewRequest) ([]lease.Renewed, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			take(t, c, key, rowlock.MinHold(ttl))
		}
		began := time.Now()
		if err := c.Close(); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("Close took %v: %v", time.Since(began), err)
		}
		if _, renewals, releases := s.asked(); renewals != 7 || releases != 0 {
			t.Errorf("%d leases were left to run out and %d freed, want 7 and none", renewals, releases)
		}
	})
}

// Unlock works in a deferred call, when ctx has ended, and ends what it does by itself.
func TestAnUnlockWithMinHoldNeedsNoContextAndDoesNotHang(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := take(t, c, "k", rowlock.MinHold(2*ttl)).Unlock(ended); err != nil {
			t.Error(err)
		}
		l := take(t, c, "hung", rowlock.MinHold(2*ttl))
		s.renew = func(ctx context.Context, _ []lease.RenewRequest) ([]lease.Renewed, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		wantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Unlock took %v", took)
		}
	})
}

func TestAnEarlyUnlockIsToldAsARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		cfg := &rowlock.Config{Hooks: rowlock.Hooks{Released: func(key string, _ int64, held time.Duration) {
			told = append(told, key+" "+held.String())
		}}}
		cfg.Reaper.Off = true
		c := client(t, newScript(), cfg)
		l := take(t, c, "k", rowlock.MinHold(ttl))
		time.Sleep(time.Second)
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "a second Unlock", l.Unlock(t.Context()), rowlock.ErrUnlocked)
		if len(told) != 1 || told[0] != "k 1s" {
			t.Errorf("told %q", told)
		}
	})
}
