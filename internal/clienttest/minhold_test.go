package clienttest

import (
	"context"
	"strings"
	"sync/atomic"
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

// A job that may take minutes still counts as run for most of a day.
func TestAMinHoldLongerThanMaxHoldIsKept(t *testing.T) {
	for name, cutOff := range map[string]bool{"a short job": false, "a job that is cut off": true} {
		t.Run(name, func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				over := time.Now().Add(2 * TTL)
				l, want := Take(t, c, "k", rowlock.MinHold(2*TTL), rowlock.MaxHold(TTL/2)), error(nil)
				if cutOff {
					<-l.Context().Done()
					want = rowlock.ErrMaxHold
				}
				WantIs(t, "Unlock", l.Unlock(t.Context()), want)
				time.Sleep(time.Until(over) - time.Millisecond)
				if !IsHeld(t, s, "k") {
					t.Error("free before MinHold was over")
				}
				time.Sleep(2 * time.Millisecond)
				if IsHeld(t, s, "k") {
					t.Error("locked after its MinHold")
				}
			})
		})
	}
}

// Nothing frees the key before its time: no error, and no release by the client.
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
				if _, _, releases := s.Calls(); releases > 0 || !IsHeld(t, s, "k") {
					t.Errorf("before its lease has ended: %d releases, held %t", releases, IsHeld(t, s, "k"))
				}
				time.Sleep(2 * time.Millisecond)
				if IsHeld(t, s, "k") {
					t.Error("held after its lease has ended")
				}
			})
		})
	}
}

// MinHold outlasts an outage in which Unlock fails, whether it is longer than the lease or much
// shorter. If it ends in the outage, the key is free soon after that.
func TestMinHoldIsKeptThoughItsUnlockFailed(t *testing.T) {
	const outage = TTL / 3
	for _, d := range []time.Duration{TTL / 10, TTL / 2, 10 * TTL} {
		t.Run(d.String(), func(t *testing.T) {
			Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
				began := time.Now()
				l := Take(t, c, "k", rowlock.MinHold(d))
				s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
					if time.Since(began) < outage {
						return nil, ErrDown
					}
					return s.Store.Renew(ctx, reqs)
				}
				s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
					if time.Since(began) < outage {
						return nil, ErrDown
					}
					return s.Store.Release(ctx, leases)
				}
				WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
				time.Sleep(d - time.Millisecond)
				if !IsHeld(t, s, "k") {
					t.Error("free before its MinHold is over")
				}
				time.Sleep(max(0, outage-d) + time.Second)
				if IsHeld(t, s, "k") {
					t.Error("locked after its MinHold")
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
		if err := c.Close(); err == nil || time.Since(began) > 10*time.Second {
			t.Errorf("Close took %v: %v", time.Since(began), err)
		}
		if _, renewals, releases := s.Calls(); renewals%7 != 0 || renewals > 5*7 || releases != 0 {
			t.Errorf("%d leases were kept and %d freed, want a few times 7 and none", renewals, releases)
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
		began := time.Now()
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if time.Since(began) > TTL/3 { // or Close would tell that it keeps nothing
				return s.Store.Renew(ctx, reqs)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("Unlock took %v", took)
		}
		time.Sleep(TTL / 2)
	})
}

func TestAnEarlyUnlockIsReportedAsARelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var released []string
		cfg := &rowlock.Config{Hooks: rowlock.Hooks{Released: func(_ context.Context, key string, _ rowlock.Token,
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

// The work has failed and must be tried again: nothing but SQL could free the key before.
func TestUnlockNowFreesAKeyBeforeItsMinHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		cfg := &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}, Hooks: rowlock.Hooks{
			Released: func(_ context.Context, key string, _ rowlock.Token, held time.Duration) {
				told = append(told, key+" released after "+held.String())
			},
			Lost: func(_ context.Context, key string, _ rowlock.Token, _ error) { told = append(told, key+" lost") },
		}}
		s := NewScript()
		c := Client(t, s, cfg)
		l := Take(t, c, "now", rowlock.MinHold(time.Hour))
		WantIs(t, "UnlockNow", l.UnlockNow(t.Context()), nil)
		if IsHeld(t, s, "now") {
			t.Error("UnlockNow has left the key locked")
		}
		WantIs(t, "a second UnlockNow", l.UnlockNow(t.Context()), rowlock.ErrUnlocked)

		l = Take(t, c, "later", rowlock.MinHold(time.Hour))
		Unlock(t, l)
		time.Sleep(time.Minute)
		if !IsHeld(t, s, "later") {
			t.Fatal("free before MinHold was over")
		}
		WantIs(t, "Unlock again", l.Unlock(t.Context()), rowlock.ErrUnlocked)
		WantIs(t, "UnlockNow after Unlock", l.UnlockNow(t.Context()), nil)
		if IsHeld(t, s, "later") {
			t.Error("UnlockNow has left the key locked")
		}
		WantIs(t, "a second UnlockNow", l.UnlockNow(t.Context()), rowlock.ErrUnlocked)
		WantIs(t, "a third Unlock", l.Unlock(t.Context()), rowlock.ErrUnlocked)
		// A gauge that counts releases counts each lock once.
		if got := strings.Join(told, ", "); got != "now released after 0s, later released after 0s" {
			t.Errorf("the hooks were told %q", got)
		}
	})
}

// The key of another holder is none of this lock's business.
func TestUnlockNowAfterMinHoldLeavesTheNextHolderAlone(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k", rowlock.MinHold(time.Minute))
		Unlock(t, l)
		time.Sleep(time.Minute + time.Second)
		next := Take(t, c, "k")
		WantIs(t, "UnlockNow", l.UnlockNow(t.Context()), rowlock.ErrUnlocked)
		WantAlive(t, next)
		if !IsHeld(t, s, "k") {
			t.Error("UnlockNow has released the next holder's lease")
		}
		Unlock(t, next)
	})
}

func TestUnlockNowPassesTheKeyToAWaiter(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, _ *Script) {
		l := Take(t, c, "k", rowlock.MinHold(time.Hour))
		Unlock(t, l)
		began := time.Now()
		time.AfterFunc(time.Minute, func() { _ = l.UnlockNow(context.Background()) })
		next, err := c.Lock(t.Context(), "k")
		WantIs(t, "Lock", err)
		if took := time.Since(began); took != time.Minute {
			t.Errorf("waited %v for a key that was freed after a minute", took)
		}
		Unlock(t, next)
	})
}

// What the database could not do goes on in the background, as after any Unlock.
func TestUnlockNowWithoutADatabase(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		var down atomic.Bool
		s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			if down.Load() {
				return nil, ErrDown
			}
			return s.Store.Release(ctx, leases)
		}
		l := Take(t, c, "k", rowlock.MinHold(time.Hour))
		Unlock(t, l)
		down.Store(true)
		WantIs(t, "UnlockNow", l.UnlockNow(t.Context()), rowlock.ErrUnknown)
		down.Store(false)
		time.Sleep(TTL)
		if IsHeld(t, s, "k") {
			t.Error("held after the database was back")
		}
	})
}

func TestUnlockNowOfAllAndOfHandles(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		ls, err := c.LockAll(t.Context(), []string{"a", "b", "c"}, rowlock.MinHold(time.Hour))
		WantIs(t, "LockAll", err)
		Unlock(t, ls.Lock("a"))
		WantIs(t, "UnlockNow of a", ls.Lock("a").UnlockNow(t.Context()), nil)
		Unlock(t, ls.Lock("b"))
		WantHolds(t, s, "bc")
		WantIs(t, "UnlockNow of all", ls.UnlockNow(t.Context()), nil)
		WantHolds(t, s, "")
		WantIs(t, "a second one", ls.UnlockNow(t.Context()), rowlock.ErrUnlocked)

		outer := Take(t, c, "a", rowlock.MinHold(time.Hour))
		inner, err := c.Lock(outer.Context(), "a", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		WantIs(t, "UnlockNow of a nested lock", inner.UnlockNow(t.Context()), nil)
		WantHolds(t, s, "a")
		WantAlive(t, outer)
		Unlock(t, outer)
		WantHolds(t, s, "a")
		WantIs(t, "UnlockNow after the last Unlock", inner.UnlockNow(t.Context()), nil)
		WantHolds(t, s, "")
	})
}

func TestUnlockNowAfterClose(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k", rowlock.MinHold(time.Hour))
		open := Take(t, c, "open", rowlock.MinHold(time.Hour))
		Unlock(t, l)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*rowlock.Lock{l, open} {
			WantIs(t, "UnlockNow", l.UnlockNow(t.Context()), rowlock.ErrClosed)
			if !IsHeld(t, s, l.Key()) {
				t.Errorf("%q: Close has not kept MinHold", l.Key())
			}
		}
	})
}

// Only the process that has locked the key can undo it.
func TestMinHoldIsBounded(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		_, err := c.TryLock(t.Context(), "k", rowlock.MinHold(24*time.Hour+1))
		WantIs(t, "TryLock", err, rowlock.ErrConfig)
		for _, part := range []string{"24h0m0.000000001s", "24h0m0s", "package once"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not name %q", err, part)
			}
		}
		if acquires, _, _ := s.Calls(); acquires != 0 {
			t.Errorf("%d acquires", acquires)
		}
		Unlock(t, Take(t, c, "k", rowlock.MinHold(24*time.Hour)))
	})
}

// A copy of the granting request may come when the lease that MinHold has kept has run out.
func TestALateCopyOfAGrantIsNotLeftBehindAMinHold(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		var copyOf []lease.AcquireRequest
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			copyOf = append(copyOf, reqs...)
			a, err := s.Store.Acquire(ctx, reqs)
			if err == nil && a[0].Granted {
				a[0].Unknown = true
			}
			return a, err
		}
		l := Take(t, c, "k", rowlock.MinHold(time.Second))
		s.OnAcquire = nil
		Unlock(t, l)
		time.Sleep(2 * time.Second)
		if IsHeld(t, s, "k") {
			t.Fatal("held after MinHold")
		}
		if _, err := s.Store.Acquire(t.Context(), copyOf); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if IsHeld(t, s, "k") {
			t.Error("held by nobody")
		}
	})
}

// A renewal that is under way at Unlock, however long, or a copy of one that had its answer, gives
// the lease its TTL after that: the key is locked until MinHold is over all the same, and no
// longer.
func TestALateRenewalDoesNotUndoAMinHold(t *testing.T) {
	for _, d := range []time.Duration{TTL * 2 / 5, TTL * 4 / 5, 5 * TTL} {
		for name, after := range map[string]time.Duration{
			"a copy": 0, "soon": 4 * time.Second, "much later": 12 * time.Second,
		} {
			t.Run(d.String()+"/"+name, func(t *testing.T) {
				Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
					sent := make(chan []lease.RenewRequest)
					s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
						s.OnRenew = nil
						sent <- reqs
						time.Sleep(after)
						return s.Store.Renew(ctx, reqs)
					}
					l, over := Take(t, c, "k", rowlock.MinHold(d)), time.Now().Add(d)
					renewal := <-sent
					synctest.Wait()
					if after == 0 {
						time.AfterFunc(4*time.Second, func() { _, _ = s.Store.Renew(context.Background(), renewal) })
					}
					last := time.Now().Add(max(after, 4*time.Second))
					Unlock(t, l)
					time.Sleep(time.Until(over) - time.Millisecond)
					if !IsHeld(t, s, "k") {
						t.Error("free before its MinHold is over")
					}
					time.Sleep(max(0, time.Until(last)) + 300*time.Millisecond)
					if IsHeld(t, s, "k") {
						t.Error("locked after its MinHold")
					}
				})
			})
		}
	}
}
