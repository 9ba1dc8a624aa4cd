package clienttest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// A worker that is slow keeps its lock; one that is stuck loses it at that moment, and not at a
// later renewal.
func TestALockEndsWhenItsHolderShowsNoProgress(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		began := time.Now()
		l := Take(t, c, "k", rowlock.MaxIdle(time.Minute+1))
		for range 10 {
			time.Sleep(time.Minute)
			WantIs(t, "Progress", l.Progress(), nil)
		}
		WantAlive(t, l)
		WantEnd(t, l, began, 11*time.Minute+1, rowlock.ErrIdle)
		if !IsHeld(t, s, "k") {
			t.Error("freed while its holder may still be at work")
		}
		WantIs(t, "Progress", l.Progress(), rowlock.ErrIdle)
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrIdle)
		if IsHeld(t, s, "k") {
			t.Error("the holder says that it is done, and the key is held")
		}
		WantIs(t, "a second Unlock", l.Unlock(t.Context()), rowlock.ErrIdle)
	})
}

// A stuck worker never calls Unlock: its lease is not renewed any more, and runs out.
func TestAWaiterGetsTheKeyOfAStuckWorker(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, _ *Script) {
		Take(t, c, "stuck", rowlock.MaxIdle(5*TTL))
		began := time.Now()
		next, err := c.Lock(t.Context(), "stuck")
		WantIs(t, "Lock", err)
		if took := time.Since(began); took < 5*TTL || took > 6*TTL+time.Second {
			t.Errorf("a stuck worker's lock passed on after %v", took)
		}
		Unlock(t, next)

		l := Take(t, c, "k", rowlock.MaxIdle(time.Second))
		context.AfterFunc(l.Context(), func() { _ = l.Unlock(context.Background()) })
		began = time.Now()
		next, err = c.Lock(t.Context(), "k")
		WantIs(t, "Lock", err)
		if took := time.Since(began); took != time.Second {
			t.Errorf("a worker that stops with its lock passed it on after %v", took)
		}
		Unlock(t, next)
	})
}

func TestMaxIdleOfTheClientAndOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost []string
		cfg := &rowlock.Config{MaxIdle: time.Minute}
		cfg.Hooks.Lost = func(_ context.Context, key string, _ rowlock.Token, cause error) {
			if errors.Is(cause, rowlock.ErrIdle) {
				lost = append(lost, key)
			}
		}
		c := Client(t, NewScript(), cfg) // with a reaper, which shows no progress
		began := time.Now()
		usual, long := Take(t, c, "usual"), Take(t, c, "long", rowlock.MaxIdle(40*time.Minute))
		// The call's MaxHold is the earlier end.
		short := Take(t, c, "short", rowlock.MaxHold(time.Second))
		WantEnd(t, short, began, time.Second, rowlock.ErrMaxHold)
		WantEnd(t, usual, began, time.Minute, rowlock.ErrIdle)
		err := c.Do(t.Context(), "do", func(ctx context.Context, l *rowlock.Lock) error {
			<-ctx.Done()
			WantIs(t, "the cause in Do", context.Cause(ctx), rowlock.ErrIdle)
			return nil
		})
		WantIs(t, "Do", err, rowlock.ErrIdle)
		WantEnd(t, long, began, 40*time.Minute, rowlock.ErrIdle)
		synctest.Wait()
		if got := strings.Join(lost, " "); got != "usual do long" {
			t.Errorf("lost %q", got)
		}
	})
}

// Progress reports what a loop wants to know, and needs no MaxIdle.
func TestProgressSaysWhyTheLockHasEnded(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		unlocked, lost := Take(t, c, "unlocked"), Take(t, c, "lost", rowlock.NoRenew())
		held := Take(t, c, "held", rowlock.MaxHold(time.Second))
		for _, l := range []*rowlock.Lock{unlocked, lost, held} {
			if err := l.Progress(); err != nil {
				t.Errorf("%q: %v", l.Key(), err)
			}
		}
		Unlock(t, unlocked)
		time.Sleep(TTL)
		for l, want := range map[*rowlock.Lock]error{
			unlocked: rowlock.ErrUnlocked, lost: rowlock.ErrLost, held: rowlock.ErrMaxHold,
		} {
			err := l.Progress()
			if !errors.Is(err, want) || !strings.Contains(err.Error(), l.Key()) {
				t.Errorf("%q: %v, want %v", l.Key(), err, want)
			}
		}
	})
}

// The holder of several locks cannot show progress before it has all of them.
func TestTheIdleTimeOfLockAllBeginsWhenItReturns(t *testing.T) {
	for _, fair := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := NewScript()
			c := Client(t, s, &rowlock.Config{Fair: fair, Reaper: rowlock.ReaperConfig{Off: true}})
			Another(t, s, "b", 10*TTL)
			ls, err := c.LockAll(t.Context(), []string{"a", "b"}, rowlock.MaxIdle(time.Second))
			WantIs(t, "LockAll", err)
			began := time.Now()
			for range 100 {
				time.Sleep(time.Second - 1)
				WantIs(t, "Progress", ls.Progress(), nil)
			}
			WantEnd(t, ls.Lock("a"), began, 101*time.Second-100, rowlock.ErrIdle)
			synctest.Wait()
			WantIs(t, "the cause of all", context.Cause(ls.Context()), rowlock.ErrIdle)
			WantIs(t, "Progress", ls.Progress(), rowlock.ErrIdle)
			WantIs(t, "Unlock", ls.Unlock(t.Context()), rowlock.ErrIdle)
			if IsHeld(t, s, "a") || IsHeld(t, s, "b") {
				t.Error("held after Unlock")
			}
		})
	}
}

func TestEveryHandleShowsProgressOfTheLease(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, _ *Script) {
		began := time.Now()
		outer := Take(t, c, "k", rowlock.MaxIdle(time.Minute))
		inner, err := c.Lock(outer.Context(), "k", rowlock.Reentrant(), rowlock.MaxIdle(time.Minute))
		WantIs(t, "Lock", err)
		for range 5 {
			time.Sleep(50 * time.Second)
			WantIs(t, "Progress", inner.Progress(), nil)
		}
		Unlock(t, inner)
		WantIs(t, "Progress of an unlocked handle", inner.Progress(), rowlock.ErrUnlocked)
		WantIs(t, "Progress", outer.Progress(), nil)
		WantEnd(t, outer, began, 310*time.Second, rowlock.ErrIdle)
		WantIs(t, "Unlock", outer.Unlock(t.Context()), rowlock.ErrIdle)
	})
}

func TestFenceRefusesALockThatWasIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewFencingStore()
		c := Client(t, s, nil)
		l := Take(t, c, "k", rowlock.MaxIdle(time.Second))
		tx := s.Begin()
		<-l.Context().Done()
		WantIs(t, "Fence", l.FenceIn(t.Context(), tx), rowlock.ErrFenced, rowlock.ErrIdle)
		WantIs(t, "UnlockTx", l.UnlockIn(t.Context(), tx), rowlock.ErrFenced, rowlock.ErrIdle)
		if len(tx.Fenced) != 0 {
			t.Errorf("the transaction has locked %q", tx.Fenced)
		}
	})
}

func TestMaxIdleIsChecked(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		for want, opts := range map[string][]rowlock.Option{
			"MaxIdle (1ms) must be at least 100ms": {rowlock.MaxIdle(time.Millisecond)},
			"MaxIdle (-1ns) must be":               {rowlock.MaxIdle(-1)},
			"MaxIdle (2m0s) must not be more than MaxHold (1m0s)": {
				rowlock.MaxIdle(2 * time.Minute), rowlock.MaxHold(time.Minute),
			},
		} {
			_, err := c.TryLock(t.Context(), "k", opts...)
			WantIs(t, "TryLock", err, rowlock.ErrConfig)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		for want, cfg := range map[string]rowlock.Config{
			"MaxIdle (-1ns) is negative": {MaxIdle: -1},
			"MaxIdle (1ms) must be at":   {MaxIdle: time.Millisecond},
			"MaxIdle (2m0s) must not be": {MaxIdle: 2 * time.Minute, MaxHold: time.Minute},
		} {
			_, err := rowlock.New(s, &cfg)
			WantIs(t, "New", err, rowlock.ErrConfig)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		if acquires, _, _ := s.Calls(); acquires != 0 {
			t.Errorf("%d acquires", acquires)
		}
	})
}

// The lock ends although a renewal hangs, and although MinHold is not over: Unlock then leaves the
// key for the rest of it.
func TestAnIdleLockKeepsItsMinHold(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		began := time.Now()
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if time.Since(began) > 55*time.Second && time.Since(began) < time.Minute {
				<-ctx.Done()
			}
			return s.Store.Renew(ctx, reqs)
		}
		l := Take(t, c, "k", rowlock.MaxIdle(time.Minute), rowlock.MinHold(time.Hour))
		WantEnd(t, l, began, time.Minute, rowlock.ErrIdle)
		WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrIdle)
		time.Sleep(time.Hour - time.Since(began) - time.Second)
		if !IsHeld(t, s, "k") {
			t.Error("free before MinHold was over")
		}
		time.Sleep(time.Second)
		if IsHeld(t, s, "k") {
			t.Error("held after MinHold was over")
		}
	})
}
