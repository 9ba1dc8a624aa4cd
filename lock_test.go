package rowlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

func TestTryLockNamesTheHolder(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		first := clienttest.Take(t, c, "k", rowlock.Note("nightly report"))
		time.Sleep(time.Second)
		before := clienttest.Record(t, s, "k")
		l, err := c.TryLock(t.Context(), "k")
		clienttest.WantIs(t, "TryLock", err, rowlock.ErrHeld)
		var held *rowlock.HeldError
		if !errors.As(err, &held) ||
			*held != (rowlock.HeldError{
				Key: "k", Identity: before.Identity(), Note: "nightly report",
				Remaining: clienttest.TTL - time.Second,
			}) {
			t.Errorf("TryLock: %v, %#v", l, err)
		}
		if after := clienttest.Record(t, s, "k"); after != before {
			t.Errorf("losing changed the row from %+v to %+v", before, after)
		}
		clienttest.Take(t, c, "K")
		clienttest.Take(t, c, "k ")
		clienttest.WantAlive(t, first)
	})
}

func TestTokensGrow(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		last := lease.Token(0)
		for range 10 {
			l := clienttest.Take(t, c, "k")
			if l.Key() != "k" || l.Token() <= last {
				t.Errorf("%q has token %d after %d", l.Key(), l.Token(), last)
			}
			last = l.Token()
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestHeldLockIsRenewed(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "k")
		for range 100 {
			time.Sleep(clienttest.TTL)
			clienttest.WantAlive(t, l)
			if !clienttest.IsHeld(t, s, "k") {
				t.Fatal("expired in the store")
			}
			if left := time.Until(l.Deadline()); left <= 0 || left > clienttest.Trust {
				t.Errorf("the deadline is %v away", left)
			}
		}
	})
}

type contextKey struct{}

// A lock outlives the request that took it.
func TestContextBoundsOnlyTheAcquiring(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), contextKey{}, "kept"),
			time.Second)
		tried, err := c.TryLock(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		locked, err := c.Lock(ctx, "b")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(10 * clienttest.TTL)
		for _, l := range []*rowlock.Lock{tried, locked} {
			clienttest.WantAlive(t, l)
			if _, ok := l.Context().Deadline(); ok {
				t.Error("the lock's context has the acquiring's deadline")
			}
			if got := l.Context().Value(contextKey{}); got != "kept" {
				t.Errorf("the context's value is %v", got)
			}
			if !clienttest.IsHeld(t, s, l.Key()) {
				t.Errorf("%q is not renewed", l.Key())
			}
		}
	})
}

func TestCanceledContextGetsNothing(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.TryLock(ctx, "k")
		clienttest.WantIs(t, "TryLock", err, context.Canceled)
		_, err = c.Lock(ctx, "k")
		clienttest.WantIs(t, "Lock", err, context.Canceled)
		if clienttest.IsHeld(t, s, "k") {
			t.Error("the key is held")
		}
	})
}

func TestKeysAreChecked(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		for name, key := range map[string]string{
			"empty":    "",
			"too long": strings.Repeat("x", 256),
			"reserved": "\x00rowlock\x00reaper",
		} {
			_, err := c.TryLock(t.Context(), key)
			clienttest.WantIs(t, name+": TryLock", err, rowlock.ErrInvalidKey)
			_, err = c.Lock(t.Context(), key)
			clienttest.WantIs(t, name+": Lock", err, rowlock.ErrInvalidKey)
			clienttest.WantIs(t, name+": Do",
				c.Do(t.Context(), key, func(context.Context, *rowlock.Lock) error { return nil }),
				rowlock.ErrInvalidKey)
		}
		if acquires, _, _ := s.Calls(); acquires != 0 {
			t.Errorf("%d requests for invalid keys", acquires)
		}
		for _, key := range []string{
			strings.Repeat("x", 255), "\x00", "\xff\xfe", "ключ", "\x00rowlock",
		} {
			clienttest.Take(t, c, key)
		}
	})
}

func TestUnlockFreesTheKey(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "k")
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if clienttest.IsHeld(t, s, "k") {
			t.Error("the key is held")
		}
		clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
		_, renewals, _ := s.Calls()
		time.Sleep(10 * clienttest.TTL)
		if _, more, _ := s.Calls(); more != renewals {
			t.Errorf("%d renewals after Unlock", more-renewals)
		}
	})
}

func TestSecondUnlockDoesNothing(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "k")
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		next := clienttest.Take(t, c, "k")
		_, _, before := s.Calls()
		clienttest.WantIs(t, "the second Unlock", l.Unlock(t.Context()), rowlock.ErrUnlocked)
		if _, _, after := s.Calls(); after != before {
			t.Errorf("the second Unlock released %d times", after-before)
		}
		time.Sleep(10 * clienttest.TTL)
		clienttest.WantAlive(t, next)
	})
}

// As in defer l.Unlock(ctx), when the request that ctx is of has died.
func TestUnlockWorksWithACanceledContext(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := c.TryLock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := l.Unlock(ctx); err != nil {
			t.Error(err)
		}
		if clienttest.IsHeld(t, s, "k") {
			t.Error("the key is held")
		}
	})
}

func TestUnlockAfterLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		s.OnRenew = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return nil, clienttest.ErrDown
		}
		c := clienttest.Client(t, s, nil)
		began := time.Now()
		l := clienttest.Take(t, c, "k")
		clienttest.WantEnd(t, l, began, clienttest.Trust, rowlock.ErrLost)
		clienttest.WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
		clienttest.WantIs(t, "the second Unlock", l.Unlock(t.Context()), rowlock.ErrLost)
	})
}

func TestUnlockAfterMaxHoldFreesTheKey(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		began := time.Now()
		l := clienttest.Take(t, c, "k", rowlock.MaxHold(5*clienttest.TTL))
		clienttest.WantEnd(t, l, began, 5*clienttest.TTL, rowlock.ErrMaxHold)
		if !clienttest.IsHeld(t, s, "k") {
			t.Error("freed while its holder may still be at work")
		}
		clienttest.WantIs(t, "Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
		if clienttest.IsHeld(t, s, "k") {
			t.Error("the holder says it is done, and the key is held")
		}
		clienttest.WantIs(t, "the second Unlock", l.Unlock(t.Context()), rowlock.ErrMaxHold)
	})
}

func TestLockPastMaxHoldExpires(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		clienttest.Take(t, c, "k", rowlock.MaxHold(5*clienttest.TTL))
		began := time.Now()
		if _, err := c.Lock(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 5*clienttest.TTL || took > 6*clienttest.TTL+time.Second {
			t.Errorf("a stuck worker's lock passed on after %v", took)
		}
	})
}

func TestNoRenewEndsByItself(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		began := time.Now()
		l := clienttest.Take(t, c, "k", rowlock.NoRenew())
		if got := l.Deadline().Sub(began); got != clienttest.Trust {
			t.Errorf("the deadline is after %v, want %v", got, clienttest.Trust)
		}
		clienttest.WantEnd(t, l, began, clienttest.Trust, rowlock.ErrLost)
		if !clienttest.IsHeld(t, s, "k") {
			t.Error("the lock ended late: the lease has expired in the store")
		}
		time.Sleep(clienttest.Margin)
		if _, renewals, _ := s.Calls(); renewals != 0 || clienttest.IsHeld(t, s, "k") {
			t.Errorf("%d renewals; held: %t", renewals, clienttest.IsHeld(t, s, "k"))
		}
	})
}

// A process that was stopped comes back with a call of Progress, before its watchdog has run: here
// the watchdog has ended. What was idle for too long is over, and what the database has given away
// is lost.
func TestProgressThatComesTooLateEndsTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := rowlock.New(memstore.New(), &rowlock.Config{Reaper: rowlock.ReaperConfig{Off: true}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		take := func(key string) *rowlock.Lock {
			l, err := c.TryLock(t.Context(), key, rowlock.MaxIdle(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		wants := func(what string, err, target error) {
			t.Helper()
			if !errors.Is(err, target) {
				t.Errorf("%s: %v, want one that is %v", what, err, target)
			}
		}
		idle, lost := take("idle"), take("lost")
		rowlock.StopWatchdog(c)
		time.Sleep(time.Second)
		wants("Progress", idle.Progress(), rowlock.ErrIdle)
		wants("the cause", context.Cause(idle.Context()), rowlock.ErrIdle)
		time.Sleep(time.Minute)
		wants("Progress", lost.Progress(), rowlock.ErrLost)
		wants("the cause", context.Cause(lost.Context()), rowlock.ErrLost)
		wants("Unlock", idle.Unlock(t.Context()), rowlock.ErrIdle)
	})
}

// A scheduler that is a little late finds the key held, and not free again.
func TestAnEarlyUnlockKeepsTheKeyForMinHold(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "k", rowlock.MinHold(2*clienttest.TTL))
		time.Sleep(clienttest.TTL / 2)
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		clienttest.WantIs(t, "the lock's context", context.Cause(l.Context()), rowlock.ErrUnlocked)
		time.Sleep(3*clienttest.TTL/2 - time.Millisecond)
		if !clienttest.IsHeld(t, s, "k") {
			t.Error("free before MinHold was over")
		}
		time.Sleep(2 * time.Millisecond)
		if clienttest.IsHeld(t, s, "k") {
			t.Error("held after MinHold was over")
		}
		clienttest.Take(t, c, "k")
	})
}

func TestAnUnlockAfterMinHoldFreesTheKey(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "k", rowlock.MinHold(clienttest.TTL))
		time.Sleep(2 * clienttest.TTL)
		if err := l.Unlock(t.Context()); err != nil || clienttest.IsHeld(t, s, "k") {
			t.Errorf("unlock: %v, held %t", err, clienttest.IsHeld(t, s, "k"))
		}
	})
}

func TestAWaiterGetsAKeyWhenItsMinHoldIsOver(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, _ *clienttest.Script) {
		began := time.Now()
		if err := clienttest.Take(t, c, "k",
			rowlock.MinHold(3*clienttest.TTL)).Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := c.Lock(t.Context(), "k")
		if took := time.Since(began); err != nil || took < 3*clienttest.TTL || took > 4*clienttest.TTL {
			t.Errorf("waited %v of %v: %v", took, 3*clienttest.TTL, err)
		}
		_ = l.Unlock(t.Context())
	})
}

func TestCloseKeepsMinHold(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		clienttest.Take(t, c, "k", rowlock.MinHold(clienttest.TTL))
		clienttest.Take(t, c, "other")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !clienttest.IsHeld(t, s, "k") || clienttest.IsHeld(t, s, "other") {
			t.Errorf("after Close: held %t, the other %t", clienttest.IsHeld(t, s, "k"),
				clienttest.IsHeld(t, s, "other"))
		}
	})
}

func TestALostLockWithMinHoldSaysSo(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "k", rowlock.MinHold(clienttest.TTL))
		r := clienttest.Record(t, s, "k")
		if _, err := s.Release(t.Context(), []lease.Lease{r.Lease}); err != nil {
			t.Fatal(err)
		}
		clienttest.WantIs(t, "unlock", l.Unlock(t.Context()), rowlock.ErrLost)
	})
}

func TestMinHoldIsChecked(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, _ *clienttest.Script) {
		for _, opts := range [][]rowlock.Option{
			{rowlock.MinHold(0)},
			{rowlock.MinHold(-1)},
		} {
			_, err := c.TryLock(t.Context(), "k", opts...)
			clienttest.WantIs(t, "TryLock", err, rowlock.ErrConfig)
		}
	})
}

// MinHold counts from the grant, however slow the answer is.
func TestMinHoldCountsFromTheGrant(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			time.Sleep(clienttest.TTL / 3)
			return s.Store.Acquire(ctx, reqs)
		}
		l := clienttest.Take(t, c, "k", rowlock.MinHold(clienttest.TTL))
		time.Sleep(clienttest.TTL - time.Second)
		if err := l.Unlock(t.Context()); err != nil || !clienttest.IsHeld(t, s, "k") {
			t.Errorf("a second before MinHold is over: %v, held %t", err, clienttest.IsHeld(t, s, "k"))
		}
	})
}

// A deferred Unlock before the error was looked at must not end the process, as a throw would.
func TestUnlockOfANilLockIsAPanicLikeAnyOther(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	var l *rowlock.Lock
	_ = l.Unlock(t.Context())
}
