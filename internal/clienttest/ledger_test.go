package clienttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
)

// span is the key of a value in a context, as a tracer has one.
type span struct{}

// events are the calls of hooks: what happened, and the span of the ctx.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) add(ctx context.Context, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	parent, _ := ctx.Value(span{}).(string)
	e.all = append(e.all, fmt.Sprintf(format, args...)+" in "+parent)
}

// want fails the test unless these were the events since the last call.
func (e *events) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.all, want) {
		t.Errorf("events %q, want %q", e.all, want)
	}
	e.all = nil
}

func (e *events) hooks() rowlock.Hooks {
	return rowlock.Hooks{
		Acquired: func(ctx context.Context, key string, token rowlock.Token, _ time.Duration) {
			e.add(ctx, "acquired %s %d", key, token)
		},
		Contended: func(ctx context.Context, key string, _ *rowlock.HeldError) {
			e.add(ctx, "contended %s", key)
		},
		HolderChanged: func(ctx context.Context, key string, token rowlock.Token, h *rowlock.HeldError) {
			e.add(ctx, "holder of %s is %s %d", key, h.Note, token)
		},
		Expired: func(ctx context.Context, key string, token rowlock.Token, h *rowlock.HeldError) {
			e.add(ctx, "expired %s of %s %d, %t", key, h.Note, token, h.Remaining <= 0)
		},
		Released: func(ctx context.Context, key string, token rowlock.Token, _ time.Duration) {
			e.add(ctx, "released %s %d", key, token)
		},
		UnlockFailed: func(ctx context.Context, key string, token rowlock.Token, err error) {
			e.add(ctx, "unlock failed %s %d, %t", key, token, errors.Is(err, rowlock.ErrUnknown))
		},
		Lost: func(ctx context.Context, key string, token rowlock.Token, _ error) {
			e.add(ctx, "lost %s %d", key, token)
		},
		Renewed: func(ctx context.Context, leases int, _ time.Duration) {
			e.add(ctx, "renewed %d", leases)
		},
		RenewFailed: func(ctx context.Context, _ error, leases int) {
			e.add(ctx, "renewal failed %d", leases)
		},
	}
}

// watched runs a test with a client whose events are recorded, without hints: polls see what
// happens.
func watched(t *testing.T, cfg rowlock.Config,
	f func(t *testing.T, c *rowlock.Client, s *Script, e *events),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, s := &events{}, NewScript()
		cfg.Hooks, cfg.Hints, cfg.Reaper.Off = e.hooks(), rowlock.HintsOff, true
		f(t, Client(t, s, &cfg), s, e)
	})
}

func named(t *testing.T, name string) context.Context {
	return context.WithValue(t.Context(), span{}, name)
}

// ledger keeps the gauge that users build: Acquired raises it, Released and Lost lower it. It fails
// the test as soon as a lock ends before it began, or twice.
type ledger struct {
	t  *testing.T
	mu sync.Mutex
	// began and ended count the events of each token of each key.
	began, ended map[string]int
	lost         int
}

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, began: make(map[string]int), ended: make(map[string]int)}
}

func (b *ledger) hooks() rowlock.Hooks {
	return rowlock.Hooks{
		Acquired: func(_ context.Context, key string, token rowlock.Token, _ time.Duration) {
			b.begin(key, token)
		},
		Released: func(_ context.Context, key string, token rowlock.Token, _ time.Duration) {
			b.end(key, token, 0)
		},
		Lost: func(_ context.Context, key string, token rowlock.Token, _ error) { b.end(key, token, 1) },
	}
}

func (b *ledger) begin(key string, token rowlock.Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.began[fmt.Sprint(key, token)]++
}

func (b *ledger) end(key string, token rowlock.Token, lost int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := fmt.Sprint(key, token)
	b.ended[id]++
	b.lost += lost
	if b.ended[id] > b.began[id] {
		b.t.Errorf("%q with token %d has ended %d times and begun %d times",
			key, token, b.ended[id], b.began[id])
	}
}

// balance fails the test unless every lock has ended once, and the client's own numbers say so.
func (b *ledger) balance(c *rowlock.Client, locks, lost int) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.began) != locks || b.lost != lost {
		b.t.Errorf("%d locks have begun and %d were lost, want %d and %d",
			len(b.began), b.lost, locks, lost)
	}
	for id, n := range b.began {
		if n != 1 || b.ended[id] != 1 {
			b.t.Errorf("%s has begun %d times and ended %d times", id, n, b.ended[id])
		}
	}
	s := c.Stats()
	if s.Held != 0 || s.Acquired != int64(locks) || s.Lost != int64(lost) ||
		s.Released != int64(locks-lost) {
		b.t.Errorf("after %d locks, of which %d were lost: %+v", locks, lost, s)
	}
}

// audited runs f with a client whose events are booked, and closes it.
func audited(t *testing.T, cfg rowlock.Config, locks, lost int,
	f func(t *testing.T, c *rowlock.Client, s *FencingStore),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b, s := newLedger(t), NewFencingStore()
		cfg.Hooks = b.hooks()
		c := Client(t, s, &cfg) // with a reaper: no event is its own
		f(t, c, s)
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		b.balance(c, locks, lost)
	})
}
