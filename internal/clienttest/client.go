package clienttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// Fairly runs a test with n fair clients on one store, as that many processes have.
func Fairly(t *testing.T, n int,
	f func(t *testing.T, s *memstore.Store, clients []*rowlock.Client),
) {
	t.Helper()
	for _, hints := range []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff} {
		t.Run(fmt.Sprintf("hints %d", hints), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				var clients []*rowlock.Client
				for range n {
					clients = append(clients,
						Client(t, s,
							&rowlock.Config{Fair: true, Hints: hints, Reaper: rowlock.ReaperConfig{Off: true}}))
				}
				f(t, s, clients)
			})
		})
	}
}

// The times of a client's locks with default settings.
const (
	TTL    = 30 * time.Second
	Margin = 3 * time.Second
	Trust  = TTL - Margin
)

// ErrDown is the error of a store that cannot be reached.
var ErrDown = errors.New("connection refused")

// Record returns the store's record of a key.
func Record(t *testing.T, s lease.Store, key string) lease.Record {
	t.Helper()
	records, err := s.Inspect(context.Background(), lease.Filter{Keys: []string{key}})
	if err != nil || len(records) > 1 {
		t.Fatalf("inspect %q: %+v, %v", key, records, err)
	}
	if len(records) == 0 {
		return lease.Record{}
	}
	return records[0]
}

// IsHeld reports whether the store has an owner of key.
func IsHeld(t *testing.T, s lease.Store, key string) bool {
	t.Helper()
	return Record(t, s, key).Held
}

// Another takes a key directly at the store, as another process does that never renews.
func Another(t *testing.T, s lease.Store, key string, ttl time.Duration) lease.Lease {
	t.Helper()
	req := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl, Note: "another"}
	answers, err := s.Acquire(context.Background(), []lease.AcquireRequest{req})
	if err != nil || !answers[0].Granted {
		t.Fatalf("acquire %q: %+v, %v", key, answers, err)
	}
	return lease.Lease{Key: key, Owner: req.Owner, Token: answers[0].Token}
}

// Client returns a client on a store, without a reaper unless cfg is given. It is closed before
// the bubble ends.
func Client(t *testing.T, s lease.Store, cfg *rowlock.Config) *rowlock.Client {
	t.Helper()
	if cfg == nil {
		cfg = &rowlock.Config{}
		cfg.Reaper.Off = true
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := rowlock.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// Bubble runs a test with a client on a store, in virtual time.
func Bubble(t *testing.T, f func(t *testing.T, c *rowlock.Client, s *Script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		f(t, Client(t, s, nil), s)
	})
}

// Take locks a free key. The lock is not forgotten before the test ends: a handle that is garbage
// releases its key.
func Take(t *testing.T, c *rowlock.Client, key string, opts ...rowlock.Option) *rowlock.Lock {
	t.Helper()
	l, err := c.TryLock(t.Context(), key, opts...)
	if err != nil {
		t.Fatalf("TryLock %q: %v", key, err)
	}
	t.Cleanup(func() { runtime.KeepAlive(l) })
	return l
}

// WantIs fails the test unless err is all of targets. what names the call.
func WantIs(t *testing.T, what string, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("%s: %v, want one that is %v", what, err, target)
		}
	}
}

// WantAlive fails the test if the lock has ended.
func WantAlive(t *testing.T, l *rowlock.Lock) {
	t.Helper()
	synctest.Wait()
	if cause := context.Cause(l.Context()); cause != nil {
		t.Errorf("%q ended: %v", l.Key(), cause)
	}
}

// WantEnd waits for the lock to end and fails the test unless it does so with cause, that long
// after from.
func WantEnd(t *testing.T, l *rowlock.Lock, from time.Time, after time.Duration, cause error) {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(100 * TTL):
		t.Fatalf("%q did not end", l.Key())
	}
	if got := time.Since(from); got != after {
		t.Errorf("%q ended after %v, want %v", l.Key(), got, after)
	}
	WantIs(t, "cause", context.Cause(l.Context()), cause)
}

// Unlock releases a lock, without an error.
func Unlock(t *testing.T, l *rowlock.Lock) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Bare hides the optional abilities of a store.
type Bare struct{ lease.Store }
