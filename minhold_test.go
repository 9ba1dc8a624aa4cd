package rowlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A scheduler that comes a little late finds the key held, and not free again.
func TestAnEarlyUnlockKeepsTheKeyForMinHold(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k", rowlock.MinHold(2*ttl))
		time.Sleep(ttl / 2)
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "the lock's context", context.Cause(l.Context()), rowlock.ErrUnlocked)
		time.Sleep(3*ttl/2 - time.Millisecond)
		if !isHeld(t, s, "k") {
			t.Error("free before MinHold was over")
		}
		time.Sleep(2 * time.Millisecond)
		if isHeld(t, s, "k") {
			t.Error("held after MinHold was over")
		}
		take(t, c, "k")
	})
}

func TestAnUnlockAfterMinHoldFreesTheKey(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k", rowlock.MinHold(ttl))
		time.Sleep(2 * ttl)
		if err := l.Unlock(t.Context()); err != nil || isHeld(t, s, "k") {
			t.Errorf("unlock: %v, held %t", err, isHeld(t, s, "k"))
		}
	})
}

func TestAWaiterGetsAKeyWhenItsMinHoldIsOver(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, _ *script) {
		began := time.Now()
		if err := take(t, c, "k", rowlock.MinHold(3*ttl)).Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err := c.Lock(t.Context(), "k")
		if took := time.Since(began); err != nil || took < 3*ttl || took > 4*ttl {
			t.Errorf("waited %v of %v: %v", took, 3*ttl, err)
		}
		_ = l.Unlock(t.Context())
	})
}

func TestCloseKeepsMinHold(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		take(t, c, "k", rowlock.MinHold(ttl))
		take(t, c, "other")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !isHeld(t, s, "k") || isHeld(t, s, "other") {
			t.Errorf("after Close: held %t, the other %t", isHeld(t, s, "k"), isHeld(t, s, "other"))
		}
	})
}

func TestALostLockWithMinHoldSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		l := take(t, c, "k", rowlock.MinHold(ttl))
		r := record(t, s, "k")
		if _, err := s.Release(t.Context(), []lease.Lease{r.Lease}); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "unlock", l.Unlock(t.Context()), rowlock.ErrLost)
	})
}

func TestMinHoldIsChecked(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, _ *script) {
		for _, opts := range [][]rowlock.Option{
			{rowlock.MinHold(0)},
			{rowlock.MinHold(-1)},
			{rowlock.MinHold(time.Minute), rowlock.MaxHold(time.Second)},
			{rowlock.MaxHold(time.Second), rowlock.MinHold(time.Minute)},
		} {
			_, err := c.TryLock(t.Context(), "k", opts...)
			wantIs(t, "TryLock", err, rowlock.ErrConfig)
		}
	})
}

func TestMinHoldInTheDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		c, err := rowlock.Open(e.DB, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l := take(t, c, "k", rowlock.MinHold(time.Hour))
		tx, err := e.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		wantIs(t, "UnlockTx", l.UnlockTx(t.Context(), tx), rowlock.ErrConfig)
		_ = tx.Rollback()
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		var held *rowlock.HeldError
		if _, err := c.TryLock(t.Context(), "k"); !errors.As(err, &held) || held.Remaining < 59*time.Minute || held.Remaining > time.Hour {
			t.Errorf("TryLock after unlock: %v", err)
		}
		e.Expire(t, "k")
		take(t, c, "k")
	})
}
