package rowlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

func TestTryLockSaysWhoHasTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		first := take(t, c, "k", rowlock.Note("nightly report"))
		time.Sleep(time.Second)
		before := record(t, s, "k")
		l, err := c.TryLock(t.Context(), "k")
		wantIs(t, "TryLock", err, rowlock.ErrHeld)
		var held *rowlock.HeldError
		if !errors.As(err, &held) || *held != (rowlock.HeldError{Key: "k", Note: "nightly report", Remaining: ttl - time.Second}) {
			t.Errorf("TryLock: %v, %#v", l, err)
		}
		if after := record(t, s, "k"); after != before {
			t.Errorf("losing changed the row from %+v to %+v", before, after)
		}
		take(t, c, "K")
		take(t, c, "k ")
		alive(t, first)
	})
}

func TestTokensGrow(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		last := int64(0)
		for range 10 {
			l := take(t, c, "k")
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
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k")
		for range 100 {
			time.Sleep(ttl)
			alive(t, l)
			if !isHeld(t, s, "k") {
				t.Fatal("expired in the store")
			}
			if left := time.Until(l.Deadline()); left <= 0 || left > trust {
				t.Errorf("the deadline is %v away", left)
			}
		}
	})
}

type contextKey struct{}

// A lock must not die with the request that happened to get it.
func TestContextBoundsOnlyTheAcquiring(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), contextKey{}, "kept"), time.Second)
		tried, err := c.TryLock(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		locked, err := c.Lock(ctx, "b")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		time.Sleep(10 * ttl)
		for _, l := range []*rowlock.Lock{tried, locked} {
			alive(t, l)
			if _, ok := l.Context().Deadline(); ok {
				t.Error("the lock's context has the acquiring's deadline")
			}
			if got := l.Context().Value(contextKey{}); got != "kept" {
				t.Errorf("the context's value is %v", got)
			}
			if !isHeld(t, s, l.Key()) {
				t.Errorf("%q is not renewed", l.Key())
			}
		}
	})
}

func TestCancelledContextGetsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.TryLock(ctx, "k")
		wantIs(t, "TryLock", err, context.Canceled)
		_, err = c.Lock(ctx, "k")
		wantIs(t, "Lock", err, context.Canceled)
		if isHeld(t, s, "k") {
			t.Error("the key is held")
		}
	})
}

func TestKeysAreChecked(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		for name, key := range map[string]string{
			"empty":    "",
			"too long": strings.Repeat("x", 256),
			"reserved": "\x00rowlock\x00reaper",
		} {
			_, err := c.TryLock(t.Context(), key)
			wantIs(t, name+": TryLock", err, rowlock.ErrInvalidKey)
			_, err = c.Lock(t.Context(), key)
			wantIs(t, name+": Lock", err, rowlock.ErrInvalidKey)
			wantIs(t, name+": Do", c.Do(t.Context(), key, func(context.Context, *rowlock.Lock) error { return nil }), rowlock.ErrInvalidKey)
		}
		if acquires, _, _ := s.asked(); acquires != 0 {
			t.Errorf("%d requests for invalid keys", acquires)
		}
		for _, key := range []string{strings.Repeat("x", 255), "\x00", "\xff\xfe", "ключ", "\x00rowlock"} {
			take(t, c, key)
		}
	})
}
