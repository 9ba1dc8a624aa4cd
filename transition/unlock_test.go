package transition_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/transition"
)

// counted is an old lock whose server is asked as a client of Redis asks: not with a ctx that has
// ended.
type counted struct{ released atomic.Int64 }

func (c *counted) Lock(context.Context, string, bool) (transition.OldHeld, error) { return c, nil }
func (c *counted) HeldAlone(context.Context, string) (bool, error)                { return false, nil }
func (c *counted) Check(context.Context) error                                    { return nil }

func (c *counted) Unlock(ctx context.Context) error {
	if ctx.Err() == nil {
		c.released.Add(1)
	}
	return ctx.Err()
}

// inBoth takes a lock in stage Both, beside old.
func inBoth(ctx context.Context, t *testing.T, old transition.OldLock) *transition.Lock {
	t.Helper()
	both, end, err := stage(t.Context(), placeOf(onPostgres(t)), transition.Both, old, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	l, err := both.Lock(ctx, "job")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A handler unlocks when its request is over, and its ctx with it. Old processes must not wait for a
// TTL.
func TestUnlockReleasesTheOldLockAfterItsContextHasEnded(t *testing.T) {
	old := new(counted)
	ctx, cancel := context.WithCancel(t.Context())
	l := inBoth(ctx, t, old)
	cancel()
	if err := l.Unlock(ctx); err != nil || old.released.Load() != 1 {
		t.Errorf("%v, and the old lock was released %d times", err, old.released.Load())
	}
}

func TestASecondUnlockIsTold(t *testing.T) {
	old := new(counted)
	l := inBoth(t.Context(), t, old)
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := l.Unlock(t.Context()); !errors.Is(err, rowlock.ErrUnlocked) && err != nil || old.released.Load() != 1 {
		t.Errorf("%v, and the old lock was released %d times", err, old.released.Load())
	}
}

// Between two refreshes the key would be lost.
func TestRedislockRefusesATTLThatItCannotKeep(t *testing.T) {
	for _, ttl := range []time.Duration{0, 100 * time.Millisecond, time.Second - 1} {
		old := transition.Redislock(redis.NewClient(&redis.Options{}), ttl, func(key string) string { return key })
		if _, err := old.Lock(t.Context(), "job", false); !errors.Is(err, rowlock.ErrConfig) {
			t.Errorf("a TTL of %s: %v, want ErrConfig", ttl, err)
		}
	}
}

// broken is an old lock of an application's own that panics.
type broken struct {
	counted
	locks bool
}

func (b *broken) Lock(context.Context, string, bool) (transition.OldHeld, error) {
	if b.locks {
		panic("out of luck")
	}
	return b, nil
}

func (b *broken) Unlock(context.Context) error { panic("out of luck") }

// The panic is the application's, which may recover; a key that no caller holds is not locked, and no
// connection is kept.
func TestAnOldLockThatPanicsLeavesOursFree(t *testing.T) {
	percent := debug.SetGCPercent(-1) // or a lock that is garbage is released
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	for name, old := range map[string]func(e *testdb.Env) transition.OldLock{
		"Lock":   func(*testdb.Env) transition.OldLock { return &broken{locks: true} },
		"Unlock": func(*testdb.Env) transition.OldLock { return &broken{} },
		"id": func(e *testdb.Env) transition.OldLock {
			return transition.Advisory(e.DB, func(string) int64 { panic("out of luck") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := onPostgres(t)
			p := placeOf(e)
			both, end, err := stage(t.Context(), p, transition.Both, old(e), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			before := e.DB.Stats().InUse
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				if l, err := both.Lock(t.Context(), "job"); err == nil {
					_ = l.Unlock(t.Context())
				}
			}()
			if now := e.DB.Stats().InUse; now > before {
				t.Errorf("%d connections are in use, and were %d", now, before)
			}
			again, end, err := stage(t.Context(), p, transition.Both, new(counted), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer end()
			l, err := again.TryLock(t.Context(), "job")
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Unlock(t.Context())
		})
	}
}

// The old lock must not be kept for as long as the process lives.
func TestUnlockWithoutAContextReleasesBoth(t *testing.T) {
	old := new(counted)
	l := inBoth(t.Context(), t, old)
	var none context.Context
	if err := l.Unlock(none); !errors.Is(err, rowlock.ErrConfig) {
		t.Errorf("%v, want ErrConfig", err)
	}
	if cause := context.Cause(l.Ours().Context()); !errors.Is(cause, rowlock.ErrUnlocked) || old.released.Load() != 1 {
		t.Errorf("ours ended with %v, and the old lock was released %d times", cause, old.released.Load())
	}
}

// lost is an old lock that is lost at once.
type lost struct{ counted }

func (l *lost) Lock(context.Context, string, bool) (transition.OldHeld, error) { return l, nil }
func (l *lost) Check(context.Context) error                                    { return errors.New("gone") }

// gate is the handler of a Logger that blocks, as on a full pipe.
type gate struct {
	slog.Handler
	entered, open chan struct{}
}

func (g gate) Handle(context.Context, slog.Record) error {
	close(g.entered)
	<-g.open
	return nil
}

func TestALoggerThatBlocksKeepsNoLock(t *testing.T) {
	g := gate{slog.NewTextHandler(io.Discard, nil), make(chan struct{}), make(chan struct{})}
	both, end, err := stage(t.Context(), placeOf(onPostgres(t)), transition.Both, new(lost), func(c *transition.Config) {
		c.Logger = slog.New(g)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	defer close(g.open)
	l, err := both.Lock(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	unlocked := make(chan error, 1)
	go func() { unlocked <- l.Unlock(t.Context()) }()
	select {
	case err := <-unlocked:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("Unlock waits for the Logger")
	}
}

// absent is an application's old lock that returns its own pointer, nil, beside the error.
type absent struct{ counted }

func (a *absent) Lock(context.Context, string, bool) (transition.OldHeld, error) {
	var none *absent
	return none, errors.New("away")
}

func (a *absent) Unlock(context.Context) error { a.released.Add(1); return nil }

func TestAnOldLockThatFailsIsNotReleased(t *testing.T) {
	both, end, err := stage(t.Context(), placeOf(onPostgres(t)), transition.Both, new(absent), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if _, err := both.Lock(t.Context(), "job"); err == nil || err.Error() != "away" {
		t.Errorf("%v, want that of the old lock", err)
	}
}
