package clienttest

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
)

// A server that recovers from a panic in a handler goes on. What the handler's call of rowlock
// leaves behind must not block other callers.

type way func(ctx context.Context, c *rowlock.Client, opts ...rowlock.Option) error

// ways are the calls that a panic in the caller's hook can interrupt.
var ways = map[string]way{
	"Lock": func(ctx context.Context, c *rowlock.Client, opts ...rowlock.Option) error {
		_, err := c.Lock(ctx, "k", opts...)
		return err
	},
	"LockAll": func(ctx context.Context, c *rowlock.Client, opts ...rowlock.Option) error {
		_, err := c.LockAll(ctx, []string{"a", "k", "z"}, opts...)
		return err
	},
	"TryLock": func(ctx context.Context, c *rowlock.Client, opts ...rowlock.Option) error {
		_, err := c.TryLock(ctx, "k", opts...)
		return err
	},
}

// eachWay runs f for every call, of a client of each kind with the hooks.
func eachWay(t *testing.T, hooks rowlock.Hooks, f func(*testing.T, *rowlock.Client, way)) {
	t.Helper()
	for name, call := range ways {
		for kind, fair := range map[string]bool{"": false, ", fair": true} {
			t.Run(name+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f(t, Client(t, NewScript(), &rowlock.Config{
						TTL: TTL, Fair: fair, Hooks: hooks, Logger: slog.New(slog.DiscardHandler),
						Reaper: rowlock.ReaperConfig{Off: true},
					}), call)
				})
			})
		}
	}
}

func panics(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("the hook was not called")
		}
	}()
	f()
}

// free fails unless all keys can be locked long before a lease left behind would have expired.
func free(t *testing.T, c *rowlock.Client, keys ...string) {
	t.Helper()
	for _, key := range keys {
		ctx, cancel := context.WithTimeout(t.Context(), TTL/2)
		l, err := c.Lock(ctx, key)
		cancel()
		if err != nil {
			t.Errorf("%q: %v", key, err)
			continue
		}
		_ = l.Unlock(t.Context())
	}
}

func TestAPanicWhileWaitingLeavesTheQueueToOtherWaiters(t *testing.T) {
	eachWay(t, rowlock.Hooks{}, func(t *testing.T, c *rowlock.Client, call way) {
		l := Take(t, c, "k")
		bad := rowlock.OnWait(func(rowlock.Waiting) { panic("out of luck") })
		func() {
			defer func() { _ = recover() }()
			_ = call(t.Context(), c, bad) // TryLock never waits
		}()
		behind := Wait(t, c, "k")
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		began := time.Now()
		if w := <-behind; w.Err != nil || w.Lock.Unlock(t.Context()) != nil ||
			time.Since(began) > TTL/2 {
			t.Errorf("the next waiter: %v, after %v", w.Err, time.Since(began))
		}
		free(t, c, "a", "k", "z")
	})
}

func TestAPanicWhenTheKeyIsHeldLeavesTheQueueToOtherWaiters(t *testing.T) {
	bad := false
	hooks := rowlock.Hooks{Contended: func(context.Context, string, *rowlock.HeldError) {
		if bad {
			panic("out of luck")
		}
	}}
	eachWay(t, hooks, func(t *testing.T, c *rowlock.Client, call way) {
		l := Take(t, c, "k")
		bad = true
		panics(t, func() { _ = call(t.Context(), c) })
		bad = false
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		free(t, c, "a", "k", "z")
	})
}

func TestAPanicWhenALockIsGotLeavesNoLock(t *testing.T) {
	calls, bad := 0, 0
	hooks := rowlock.Hooks{Acquired: func(context.Context, string, rowlock.Token, time.Duration) {
		if calls++; calls == bad {
			panic("out of luck")
		}
	}}
	eachWay(t, hooks, func(t *testing.T, c *rowlock.Client, call way) {
		for _, bad = range []int{1, 2, 3} {
			calls = 0
			func() {
				defer func() {
					if recover() == nil && bad == 1 {
						t.Error("the hook was not called")
					}
				}()
				if err := call(t.Context(), c); err != nil {
					t.Error(err)
				}
			}()
			panicked := calls == bad
			bad = 0
			if !panicked { // one key only: it is held, and not left behind
				return
			}
			free(t, c, "a", "k", "z")
		}
	})
}

func TestACallThatEndsInAHookLeavesNoHandleOfTheLockAbove(t *testing.T) {
	nothing := func() {}
	found := nothing
	hooks := rowlock.Hooks{Contended: func(context.Context, string, *rowlock.HeldError) { found() }}
	eachWay(t, hooks, func(t *testing.T, c *rowlock.Client, call way) {
		k := Take(t, c, "k")
		for _, end := range []func(){func() { panic("out of luck") }, runtime.Goexit} {
			above, over := Take(t, c, "a"), make(chan struct{})
			found = end
			go func() {
				defer close(over)
				defer func() { _ = recover() }()
				t.Errorf("the hook was not called: %v", call(above.Context(), c, rowlock.Reentrant()))
			}()
			<-over
			found = nothing
			Unlock(t, above)
			free(t, c, "a")
		}
		Unlock(t, k)
	})
}

// The lock is over, so that no other call would release it.
func TestAPanicBeforeAReleaseLeavesNoLease(t *testing.T) {
	var bad bool
	hooks := rowlock.Hooks{Releasing: func(context.Context, string, rowlock.Token) {
		if bad {
			bad = false
			panic("out of luck")
		}
	}}
	eachWay(t, hooks, func(t *testing.T, c *rowlock.Client, _ way) {
		l, err := c.LockAll(t.Context(), []string{"a", "k", "z"})
		if err != nil {
			t.Fatal(err)
		}
		bad = true
		panics(t, func() { _ = l.Unlock(t.Context()) })
		free(t, c, "a", "k", "z")
	})
}

// What a hook does after a release changes nothing of it: each lock ends once, its Released is
// called once, and Close goes on behind a hook that has panicked.
func TestAPanicAfterAReleaseEndsEachLockOnce(t *testing.T) {
	var order []string
	bad := true
	hooks := rowlock.Hooks{
		Releasing: func(_ context.Context, key string, _ rowlock.Token) { order = append(order, "releasing "+key) },
		Released: func(_ context.Context, key string, _ rowlock.Token, _ time.Duration) {
			order = append(order, "released "+key)
			if bad {
				bad = false
				panic("out of luck")
			}
		},
	}
	synctest.Test(t, func(t *testing.T) {
		c, err := rowlock.New(memstore.New(), &rowlock.Config{Hooks: hooks, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		first, err := c.Lock(t.Context(), "first")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Lock(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
		panics(t, func() { _ = first.Unlock(t.Context()) })
		if err := first.Unlock(t.Context()); !errors.Is(err, rowlock.ErrUnlocked) {
			t.Errorf("the second Unlock: %v", err)
		}
		again, err := c.TryLock(t.Context(), "first")
		if err != nil {
			t.Errorf("the key of the lock whose hook has panicked: %v", err)
		} else if err := again.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		want := []string{
			"releasing first", "released first", "releasing first", "released first",
			"releasing second", "released second",
		}
		if !slices.Equal(order, want) {
			t.Errorf("the hooks were called as %q", order)
		}
	})
}
