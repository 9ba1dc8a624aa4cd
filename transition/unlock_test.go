package transition_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock"
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
