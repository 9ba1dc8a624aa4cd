package once_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

func (r *rig) client(tb testing.TB) *rowlock.Client {
	tb.Helper()
	c, err := rowlock.Open(r.Pool(tb), r.Dialect, &rowlock.Config{
		Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func TestARequestIsDoneUnderTheLockThatItIsGiven(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o, c, other := r.once(t), r.client(t), r.client(t)
		l, err := c.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		f := then(r.effect("held", "value"), func() error {
			if _, err := other.TryLock(t.Context(), "k"); !errors.Is(err, rowlock.ErrHeld) {
				t.Errorf("another owner, during the function: %v", err)
			}
			return nil
		})
		do(t, o, once.Request{Key: "held", Lock: l}, f)
		r.wantEffects(t, "held", 1)
		if err := l.Unlock(t.Context()); err != nil {
			t.Errorf("Unlock after Do: %v", err)
		}
		if n := c.Stats().UnlockFailed; n != 0 {
			t.Errorf("%d unlocks failed", n)
		}
	})
}

func TestARequestWhoseLockWasLostIsNotDone(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		o, c := r.once(t), r.client(t)
		l, err := c.Lock(t.Context(), "k", rowlock.NoRenew())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Unlock(t.Context()) }()
		if _, err := r.client(t).ForceRelease(t.Context(), "k", rowlock.Force{Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		_, err = o.Do(t.Context(), once.Request{Key: "lost", Lock: l}, r.effect("lost", "value"))
		wantIs(t, err, lease.ErrFenced)
		r.wantEffects(t, "lost", 0)
		do(t, o, once.Request{Key: "lost"}, r.effect("lost", "value")) // the key was not taken
		var none *rowlock.Lock
		_, err = o.Do(t.Context(), once.Request{Key: "none", Lock: none}, r.effect("none", "value"))
		wantIs(t, err, lease.ErrConfig)
		tx, err := r.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		_, err = o.In(t.Context(), tx, once.Request{Key: "in", Lock: l}, r.effect("in", "value"))
		wantIs(t, err, lease.ErrFenced)
	})
}
