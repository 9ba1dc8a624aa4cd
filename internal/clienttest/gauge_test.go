package clienttest

import (
	"context"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// A gauge of the locks held is what users build first. An end that is told twice, or never, leaves
// it wrong until the process ends.
func TestEveryLockIsAcquiredOnceAndEndsOnce(t *testing.T) {
	for name, way := range map[string]struct {
		locks, lost int
		fair        bool
		f           func(t *testing.T, c *rowlock.Client, s *FencingStore)
	}{
		"Close":                         {2, 0, false, leaveToClose},
		"Unlock":                        {1, 0, false, unlockTwice},
		"a failed Unlock":               {1, 0, false, failToUnlock},
		"MaxHold":                       {1, 1, false, holdTooLong},
		"MinHold":                       {1, 0, false, unlockEarly},
		"loss":                          {1, 1, false, loseByTime},
		"loss that Unlock finds":        {1, 1, false, loseToAnother},
		"loss that Fence finds":         {1, 1, false, loseToFence},
		"UnlockTx and Unlock":           {1, 0, false, unlockTx},
		"UnlockTx without Unlock":       {1, 0, false, unlockTxAlone},
		"UnlockTx that was rolled back": {1, 0, false, unlockTxInVain},
		"LockAll":                       {2, 0, false, lockAll},
		"LockAll that keeps nothing":    {2, 1, true, lockAllInVain},
		"Do":                            {1, 0, false, doIt},
		"a panic in Do":                 {1, 0, false, panicInDo},
		"Reentrant":                     {1, 0, false, reenter},
		"a hand-over":                   {2, 0, false, handOver},
		"a fair hand-over":              {2, 0, true, handOver},
	} {
		t.Run(name, func(t *testing.T) {
			audited(t, rowlock.Config{Fair: way.fair}, way.locks, way.lost, way.f)
		})
	}
}

func leaveToClose(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	Take(t, c, "a")
	Take(t, c, "b", rowlock.NoRenew())
}

func unlockTwice(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	l := Take(t, c, "k")
	Unlock(t, l)
	WantIs(t, "again", l.Unlock(t.Context()), rowlock.ErrUnlocked)
}

func failToUnlock(t *testing.T, c *rowlock.Client, s *FencingStore) {
	var down atomic.Bool
	down.Store(true)
	s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
		if down.Load() {
			return nil, ErrDown
		}
		return s.Store.Release(ctx, leases)
	}
	l := Take(t, c, "k")
	WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrUnknown)
	down.Store(false)
}

func holdTooLong(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	l := Take(t, c, "k", rowlock.MaxHold(time.Second))
	<-l.Context().Done()
	WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
}

func unlockEarly(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	Unlock(t, Take(t, c, "k", rowlock.MinHold(time.Hour)))
}

func loseByTime(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	l := Take(t, c, "k", rowlock.NoRenew())
	<-l.Context().Done()
	WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
}

func loseToAnother(t *testing.T, c *rowlock.Client, s *FencingStore) {
	l := Take(t, c, "k")
	s.Expire("k")
	Another(t, s, "k", time.Hour)
	WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
}

func loseToFence(t *testing.T, c *rowlock.Client, s *FencingStore) {
	l := Take(t, c, "k")
	s.Expire("k")
	Another(t, s, "k", time.Hour)
	WantIs(t, "Fence", l.FenceIn(t.Context(), s.Begin()), rowlock.ErrLost)
	WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
}

func unlockTx(t *testing.T, c *rowlock.Client, s *FencingStore) {
	l, tx := Take(t, c, "k"), s.Begin()
	WantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx))
	tx.Commit()
	Unlock(t, l)
}

func unlockTxAlone(t *testing.T, c *rowlock.Client, s *FencingStore) {
	l, tx := Take(t, c, "k"), s.Begin()
	WantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx))
	tx.Commit()
	<-l.Context().Done()
	WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
}

func unlockTxInVain(t *testing.T, c *rowlock.Client, s *FencingStore) {
	l, tx := Take(t, c, "k"), s.Begin()
	WantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx))
	tx.End()
	time.Sleep(TTL)
	WantAlive(t, l)
	Unlock(t, l)
}

func lockAll(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	UnlockAll(t, TakeAll(t, c, "a", "b"))
}

// A fair LockAll keeps its first key while it waits for the second, and loses it meanwhile.
func lockAllInVain(t *testing.T, c *rowlock.Client, s *FencingStore) {
	Another(t, s, "b", time.Minute)
	done := WaitAll(t, t.Context(), c, []string{"a", "b"}, rowlock.MaxHold(2*time.Second))
	w := <-done
	WantIs(t, "LockAll", w.Err, rowlock.ErrMaxHold)
}

func doIt(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	err := c.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error { return nil })
	WantIs(t, "Do", err)
}

func panicInDo(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	panics(t, func() {
		_ = c.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error { panic("out of luck") })
	})
}

func reenter(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	outer := Take(t, c, "k")
	inner, err := c.Lock(outer.Context(), "k", rowlock.Reentrant())
	WantIs(t, "Lock", err)
	Unlock(t, inner)
	Unlock(t, outer)
}

func handOver(t *testing.T, c *rowlock.Client, _ *FencingStore) {
	l := Take(t, c, "k")
	next := Wait(t, c, "k")
	Unlock(t, l)
	Unlock(t, (<-next).Lock)
}

// Close may end a lock while its Acquired still runs. A gauge would fall below 0, and a span end
// before it begins.
func TestNoEndIsToldBeforeTheBeginning(t *testing.T) {
	for name, end := range map[string]struct {
		lost int
		f    func(c *rowlock.Client)
	}{
		"by Close":   {0, func(c *rowlock.Client) { go c.Close() }},
		"by MaxHold": {1, func(*rowlock.Client) { time.Sleep(2 * time.Second) }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newLedger(t)
				cfg := &rowlock.Config{Hooks: b.hooks(), Reaper: rowlock.ReaperConfig{Off: true}}
				var c *rowlock.Client
				cfg.Hooks.Acquired = func(_ context.Context, key string, token lease.Token, _ time.Duration) {
					end.f(c)
					synctest.Wait() // the lock has ended
					b.begin(key, token)
				}
				c = Client(t, NewScript(), cfg)
				_, _ = c.TryLock(t.Context(), "k", rowlock.MaxHold(time.Second))
				synctest.Wait()
				b.balance(c, 1, end.lost)
			})
		})
	}
}

// A hook that panics leaves no lock, and has begun it all the same.
func TestALockWhoseHookPanicsIsReleasedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newLedger(t)
		cfg := &rowlock.Config{Hooks: b.hooks(), Reaper: rowlock.ReaperConfig{Off: true}}
		begin := cfg.Hooks.Acquired
		cfg.Hooks.Acquired = func(ctx context.Context, key string, token lease.Token, d time.Duration) {
			begin(ctx, key, token, d)
			panic("out of luck")
		}
		c := Client(t, NewScript(), cfg)
		panics(t, func() { _, _ = c.TryLock(t.Context(), "k") })
		b.balance(c, 1, 0)
	})
}

// A leak is told of, and then released. It is no bubble, whose objects are not collected.
func TestALeakedLockIsReleasedOnce(t *testing.T) {
	b, released := newLedger(t), make(chan struct{})
	cfg := &rowlock.Config{
		Hooks: b.hooks(), Reaper: rowlock.ReaperConfig{Off: true},
		Logger: slog.New(slog.DiscardHandler),
	}
	end := cfg.Hooks.Released
	cfg.Hooks.Released = func(ctx context.Context, key string, token lease.Token, held time.Duration) {
		end(ctx, key, token, held)
		close(released)
	}
	leaks := make(chan any, 1)
	cfg.Hooks.Leaked = func(ctx context.Context, _ string, _ rowlock.Token, _ time.Duration, _ string) {
		leaks <- ctx.Value(span{})
	}
	c := Client(t, NewScript(), cfg)
	ctx := context.WithValue(t.Context(), span{}, "parent")
	func() {
		if _, err := c.Lock(ctx, "k"); err != nil {
			t.Fatal(err)
		}
	}()
	runtime.GC()
	select {
	case parent := <-leaks:
		if parent != "parent" {
			t.Errorf("the leak's context has %v", parent)
		}
		<-released
	case <-time.After(10 * time.Second):
		t.Fatal("no leak was found")
	}
	if n := c.Stats().Leaks; n != 1 {
		t.Errorf("%d leaks", n)
	}
	b.balance(c, 1, 0)
}
