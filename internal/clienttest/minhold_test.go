package clienttest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// unlocker is a Lock or Locks.
type unlocker interface {
	Context() context.Context
	Unlock(ctx context.Context) error
}

// A lock whose MaxHold is over still has a MinHold if the answer was slow, because MaxHold counts
// from the request and MinHold from the grant.
func TestAnUnlockAfterMaxHoldKeepsMinHold(t *testing.T) {
	for name, lock := range map[string]func(context.Context, *rowlock.Client) (unlocker, error){
		"one": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
			return c.TryLock(ctx, "k", rowlock.MinHold(TTL), rowlock.MaxHold(TTL))
		},
		"all": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
			return c.TryLockAll(ctx, []string{"k"}, rowlock.MinHold(TTL), rowlock.MaxHold(TTL))
		},
	} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					time.Sleep(time.Second)
					return s.Store.Acquire(ctx, reqs)
				}
				s.OnAcquireAll = func(ctx context.Context,
					reqs []lease.AcquireRequest,
				) ([]lease.Acquired, error) {
					time.Sleep(time.Second)
					return s.Store.AcquireAll(ctx, reqs)
				}
				l, err := lock(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				<-l.Context().Done()
				synctest.Wait()
				WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
				if !IsHeld(t, s, "k") {
					t.Error("free before MinHold was over")
				}
			})
		})
	}
}

// Nothing frees the key before its time: no error, and no cleaning up by the client.
func TestAnUnlockThatFailedKeepsTheKeyForItsLease(t *testing.T) {
	for name, renew := range map[string]func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error){
		"the call": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return nil, ErrDown
		},
		"the answer": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return []lease.Renewed{{Err: ErrDown}}, nil
		},
		"no answer": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				l := Take(t, c, "k", rowlock.MinHold(TTL))
				s.OnRenew = renew
				WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
				time.Sleep(TTL - time.Millisecond)
				if !IsHeld(t, s, "k") {
					t.Error("free before its lease has ended")
				}
				time.Sleep(2 * time.Millisecond)
				if _, _, releases := s.Calls(); releases > 0 || IsHeld(t, s, "k") {
					t.Errorf("%d releases, held %t", releases, IsHeld(t, s, "k"))
				}
			})
		})
	}
}

// A database that does not answer delays Close once, not once for each key.
func TestCloseLeavesManyKeysInOneCall(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		s.OnRenew = func(ctx context.Context, _ []lease.RenewRequest) ([]lease.Renewed, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			Take(t, c, key, rowlock.MinHold(TTL))
		}
		began := time.Now()
		if err := c.Close(); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("Close took %v: %v", time.Since(began), err)
		}
		if _, renewals, releases := s.Calls(); renewals != 7 || releases != 0 {
			t.Errorf("%d leases were left to run out and %d freed, want 7 and none", renewals, releases)
		}
	})
}

// Unlock works in a deferred call whose ctx has ended, and bounds itself.
func TestAnUnlockWithMinHoldNeedsNoContextAndDoesNotHang(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Take(t, c, "k", rowlock.MinHold(2*TTL)).Unlock(ended); err != nil {
			t.Error(err)
		}
		l := Take(t, c, "hung", rowlock.MinHold(2*TTL))
		s.OnRenew = func(ctx context.Context, _ []lease.RenewRequest) ([]lease.Renewed, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Unlock took %v", took)
		}
	})
}

func TestAnEarlyUnlockIsReportedAsARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released []string
		cfg := &rowlock.Config{Hooks: rowlock.Hooks{Released: func(key string, _ int64,
			held time.Duration,
		) {
			released = append(released, key+" "+held.String())
		}}}
		cfg.Reaper.Off = true
		c := Client(t, NewScript(), cfg)
		l := Take(t, c, "k", rowlock.MinHold(TTL))
		time.Sleep(time.Second)
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		WantIs(t, "a second Unlock", l.Unlock(t.Context()), rowlock.ErrUnlocked)
		if len(released) != 1 || released[0] != "k 1s" {
			t.Errorf("released %q", released)
		}
	})
}
