package clienttest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
)

// wantDeadlock wants err to name the key and the token of the lock that is held.
func wantDeadlock(t *testing.T, what string, err error, l *rowlock.Lock) {
	t.Helper()
	var d *rowlock.DeadlockError
	if !errors.As(err, &d) || !errors.Is(err, rowlock.ErrDeadlock) {
		t.Errorf("%s: %v, want ErrDeadlock", what, err)
		return
	}
	if d.Key != l.Key() || d.Token != l.Token() {
		t.Errorf("%s: %+v, want key %q and token %d", what, d, l.Key(), l.Token())
	}
	if !strings.Contains(err.Error(), "Reentrant") {
		t.Errorf("%s: %q does not name the cure", what, err)
	}
}

// A call chain that locks a key twice would wait for itself for ever.
func TestACallChainThatWaitsForItselfIsRefused(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, _ *Script) {
		l := Take(t, c, "k")
		other := Take(t, c, "other")
		ctx := l.Context()
		_, err := c.Lock(ctx, "k")
		wantDeadlock(t, "Lock", err, l)
		_, err = c.TryLock(ctx, "k")
		wantDeadlock(t, "TryLock", err, l)
		_, err = c.LockAll(ctx, []string{"a", "k"})
		wantDeadlock(t, "LockAll", err, l)
		_, err = c.TryLockAll(ctx, []string{"a", "k"})
		wantDeadlock(t, "TryLockAll", err, l)
		err = c.Do(ctx, "k", func(context.Context, *rowlock.Lock) error { return nil })
		wantDeadlock(t, "Do", err, l)
		_, err = c.TryLock(ctx, "other")
		WantIs(t, "a key that another chain holds", err, rowlock.ErrHeld)
		Unlock(t, other)
		below, err := c.Lock(ctx, "other")
		WantIs(t, "another key", err)
		_, err = c.Lock(below.Context(), "k")
		wantDeadlock(t, "two levels below", err, l)
		Unlock(t, below)
		Unlock(t, l)
		again, err := c.Lock(context.WithoutCancel(ctx), "k")
		WantIs(t, "after Unlock", err)
		Unlock(t, again)
	})
}

func TestDoAndLockAllTellTheirCallsWhatTheyHold(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, _ *Script) {
		err := c.Do(t.Context(), "k", func(ctx context.Context, l *rowlock.Lock) error {
			_, err := c.Lock(ctx, "k")
			wantDeadlock(t, "in Do", err, l)
			return nil
		})
		WantIs(t, "Do", err)
		ls, err := c.LockAll(t.Context(), []string{"a", "b"})
		WantIs(t, "LockAll", err)
		for _, key := range ls.Keys() {
			_, err := c.Lock(ls.Context(), key)
			wantDeadlock(t, "in LockAll", err, ls.Lock(key))
		}
		if err := ls.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Another client on the same store waits for the same row.
func TestAChainGoesThroughEveryClientOfTheTables(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		_, err := Client(t, s, nil).Lock(l.Context(), "k")
		wantDeadlock(t, "the same store", err, l)
		elsewhere, err := Client(t, memstore.New(), nil).Lock(l.Context(), "k")
		WantIs(t, "another store", err)
		Unlock(t, elsewhere)
		Unlock(t, l)
	})
}

// A recursive function locks its own key again.
func TestReentrantSharesTheLease(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		outer := Take(t, c, "k", rowlock.Reentrant())
		inner, err := c.Lock(outer.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		if inner.Token() != outer.Token() {
			t.Errorf("tokens %d and %d", outer.Token(), inner.Token())
		}
		if acquires, _, _ := s.Calls(); acquires != 1 {
			t.Errorf("%d acquires", acquires)
		}
		Unlock(t, inner)
		WantIs(t, "the context of the inner one", context.Cause(inner.Context()), rowlock.ErrUnlocked)
		WantIs(t, "a second Unlock", inner.Unlock(t.Context()), rowlock.ErrUnlocked)
		WantAlive(t, outer)
		if !IsHeld(t, s, "k") {
			t.Fatal("the first Unlock has released the row")
		}
		Unlock(t, outer)
		if IsHeld(t, s, "k") {
			t.Error("the last Unlock has not released the row")
		}
	})
}

// The handles may be unlocked in any order, and the loss of the lease is the loss of each.
func TestHandlesOfALeaseEndInAnyOrder(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		outer := Take(t, c, "k")
		inner, err := c.Lock(outer.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		Unlock(t, outer)
		if !IsHeld(t, s, "k") || inner.Context().Err() != nil {
			t.Fatal("the outer Unlock has taken the lock from the inner handle")
		}
		Unlock(t, inner)

		outer = Take(t, c, "k", rowlock.NoRenew())
		inner, err = c.Lock(outer.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		time.Sleep(2 * TTL)
		WantIs(t, "the inner context", context.Cause(inner.Context()), rowlock.ErrLost)
		WantIs(t, "the inner Unlock", inner.Unlock(t.Context()), rowlock.ErrLost)
		WantIs(t, "the outer Unlock", outer.Unlock(t.Context()), rowlock.ErrLost)
	})
}

func TestLockAllSharesWhatItsChainHolds(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		b := Take(t, c, "b")
		ls, err := c.LockAll(b.Context(), []string{"a", "b", "c"}, rowlock.Reentrant())
		WantIs(t, "LockAll", err)
		if ls.Lock("b").Token() != b.Token() || len(ls.Keys()) != 3 {
			t.Errorf("keys %q, token %d", ls.Keys(), ls.Lock("b").Token())
		}
		if err := ls.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if IsHeld(t, s, "a") || IsHeld(t, s, "c") || !IsHeld(t, s, "b") {
			t.Error("Unlock released another set of keys than it had locked by itself")
		}
		Unlock(t, b)
	})
}

// A nested call shares the lease as it is. What it asks for besides must be what there is.
func TestANestedCallCannotChangeTheLock(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		first := []rowlock.Option{
			rowlock.TTL(time.Minute), rowlock.NoRenew(), rowlock.MaxHold(time.Hour),
			rowlock.MinHold(time.Second), rowlock.MaxIdle(10 * time.Second),
		}
		outer := Take(t, c, "k", first...)
		plain := Take(t, c, "plain")
		ctx := outer.Context()
		for _, same := range append([][]rowlock.Option{nil, first}, first[:1], first[1:2], first[2:4],
			[]rowlock.Option{rowlock.Note("n"), rowlock.Priority(9), rowlock.OnWait(func(rowlock.Waiting) {})}) {
			inner, err := c.Lock(ctx, "k", append(same, rowlock.Reentrant())...)
			WantIs(t, "the same options", err)
			Unlock(t, inner)
		}
		for _, other := range []struct {
			l      *rowlock.Lock
			option rowlock.Option
			want   string
		}{
			{outer, rowlock.TTL(time.Hour), "TTL (1h0m0s) of"},
			{outer, rowlock.TTL(time.Hour), `on "k" that its ctx holds (1m0s): give the same`},
			{outer, rowlock.MaxHold(time.Minute), "MaxHold (1m0s) of"},
			{outer, rowlock.MinHold(time.Minute), "MinHold (1m0s) of"},
			{outer, rowlock.MaxIdle(time.Minute), "MaxIdle (1m0s) of"},
			{plain, rowlock.NoRenew(), "the RenewEvery of NoRenew (none) of"},
			{plain, rowlock.NoRenew(), "holds (10s)"},
			{plain, rowlock.MaxHold(time.Minute), "holds (none)"},
			{plain, rowlock.TTL(time.Minute), "holds (30s)"},
		} {
			_, err := c.Lock(other.l.Context(), other.l.Key(), rowlock.Reentrant(), other.option)
			WantIs(t, "Lock", err, rowlock.ErrConfig)
			if err == nil || !strings.Contains(err.Error(), other.want) {
				t.Errorf("%v, want %q", err, other.want)
			}
			_, err = c.LockAll(other.l.Context(), []string{"a", other.l.Key(), "z"}, rowlock.Reentrant(),
				other.option)
			WantIs(t, "LockAll", err, rowlock.ErrConfig)
		}
		if acquires, _, _ := s.Calls(); acquires != 2 {
			t.Errorf("%d acquires, want those of the two locks", acquires)
		}
		WantIs(t, "Progress", outer.Progress(), nil)
		Unlock(t, plain)
		Unlock(t, outer)
	})
}

// The settings of another client on the same tables are no options of the call.
func TestANestedCallThroughAnotherClient(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		other := Client(t, s, &rowlock.Config{
			TTL: time.Hour, MaxHold: time.Hour, MaxIdle: time.Minute, Reentrant: true,
			Reaper: rowlock.ReaperConfig{Off: true},
		})
		outer := Take(t, c, "k")
		inner, err := other.Lock(outer.Context(), "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		Unlock(t, outer)
		time.Sleep(2 * time.Minute)
		WantAlive(t, inner)
		Unlock(t, inner)
		if IsHeld(t, s, "k") {
			t.Error("held after the last Unlock")
		}
	})
}

// Reentrant is for one chain of calls. Goroutines that share its ctx are all let in.
func TestGoroutinesThatShareACtx(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		l := Take(t, c, "k")
		var in sync.WaitGroup
		var inside atomic.Int32
		for range 2 {
			in.Go(func() {
				_, err := c.Lock(l.Context(), "k")
				wantDeadlock(t, "without Reentrant", err, l)
				nested, err := c.Lock(l.Context(), "k", rowlock.Reentrant())
				WantIs(t, "with Reentrant", err)
				inside.Add(1)
				time.Sleep(time.Second)
				if n := inside.Load(); n != 2 {
					t.Errorf("%d goroutines are in, want both", n)
				}
				Unlock(t, nested)
			})
		}
		in.Wait()
		// With the ctx from before the lock they exclude each other.
		Unlock(t, l)
		var alone atomic.Int32
		for range 2 {
			in.Go(func() {
				l, err := c.Lock(t.Context(), "k", rowlock.Reentrant())
				WantIs(t, "with a ctx of their own", err)
				if n := alone.Add(1); n != 1 {
					t.Errorf("%d goroutines are in", n)
				}
				time.Sleep(time.Second)
				alone.Add(-1)
				Unlock(t, l)
			})
		}
		in.Wait()
	})
}

type ctxKey string

// A nested handle's context is the nested call's, and ends with the handle and with the lock.
func TestTheContextOfANestedHandle(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		outer := Take(t, c, "k", rowlock.MaxHold(time.Hour))
		ctx, cancel := context.WithCancel(context.WithValue(outer.Context(), ctxKey("request"), 7))
		inner, err := c.Lock(ctx, "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		second, err := c.Lock(ctx, "k", rowlock.Reentrant())
		WantIs(t, "Lock", err)
		cancel()
		WantAlive(t, inner)
		if inner.Context().Value(ctxKey("request")) != 7 {
			t.Error("the values of the nested call's ctx are lost")
		}
		_, err = c.Lock(inner.Context(), "k")
		wantDeadlock(t, "with the nested context", err, outer)
		Unlock(t, second)
		WantIs(t, "its own end", context.Cause(second.Context()), rowlock.ErrUnlocked)
		WantAlive(t, inner)
		time.Sleep(time.Hour)
		synctest.Wait()
		WantIs(t, "the lock's end", context.Cause(inner.Context()), rowlock.ErrMaxHold)
		// A lock that has ended is no deadlock: the key is another owner's business now.
		_, err = c.TryLock(context.WithoutCancel(inner.Context()), "k")
		WantIs(t, "after the end", err, rowlock.ErrHeld)
		WantIs(t, "Unlock", inner.Unlock(t.Context()), rowlock.ErrMaxHold)
		WantIs(t, "Unlock", outer.Unlock(t.Context()), rowlock.ErrMaxHold)
		again, err := c.Lock(context.WithoutCancel(inner.Context()), "k", rowlock.Reentrant())
		WantIs(t, "after Unlock", err)
		Unlock(t, again)
	})
}

// forget locks a key and loses the handle.
//
//go:noinline
func forget(t *testing.T, c *rowlock.Client, key string) {
	if _, err := c.Lock(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

// The key would stay locked until the process ends.
func TestAForgottenLockIsReleased(t *testing.T) {
	leaked := make(chan string, 8)
	s := memstore.New()
	cfg := &rowlock.Config{
		Debug: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Reaper: rowlock.ReaperConfig{Off: true},
	}
	cfg.Hooks.Leaked = func(
		_ context.Context, key string, token rowlock.Token, age time.Duration, taken string,
	) {
		if token != 1 || age < 0 || !strings.Contains(taken, "clienttest.forget") {
			t.Errorf("%q: token %d, age %v, taken by %q", key, token, age, taken)
		}
		leaked <- key
	}
	c, err := rowlock.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	kept, err := c.Lock(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	forget(t, c, "forgotten")
	runtime.GC()
	select {
	case key := <-leaked:
		if key != "forgotten" {
			t.Errorf("%q leaked", key)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("no leak was found")
	}
	next, err := c.Lock(t.Context(), "forgotten") // as soon as the release is done
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []*rowlock.Lock{next, kept} {
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if len(leaked) > 0 {
		t.Errorf("%q leaked too", <-leaked)
	}
}

func TestWhatAReentrantClientLocksIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := &rowlock.Config{Reentrant: true}
		cfg.Reaper.Off = true
		s := memstore.New()
		c := Client(t, s, cfg)
		outer := Take(t, c, "k")
		inner, err := c.Lock(outer.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if inner.Token() != outer.Token() {
			t.Errorf("the nested lock has token %d, want %d", inner.Token(), outer.Token())
		}
		all, err := c.TryLockAll(outer.Context(), []string{"j", "k"})
		WantIs(t, "TryLockAll", err)
		UnlockAll(t, all)
		Unlock(t, outer)
		WantAlive(t, inner)
		Unlock(t, inner)
		if IsHeld(t, s, "k") {
			t.Error("held after the last Unlock")
		}
	})
}

// The lease is the first client's, which is open, whichever client's call has the last handle.
func TestAHandleThatIsUnlockedAfterItsClientWasClosed(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		other := Client(t, s, nil)
		outer := Take(t, c, "k")
		nested, err := other.LockAll(outer.Context(), []string{"j", "k"}, rowlock.Reentrant())
		WantIs(t, "LockAll", err)
		Unlock(t, outer)
		waiting := Wait(t, c, "k")
		Unlock(t, Take(t, other, "another"))
		WantIs(t, "Close", other.Close())
		UnlockAll(t, nested)
		got := <-waiting
		WantIs(t, "Lock", got.Err)
		Unlock(t, got.Lock)
	})
}
