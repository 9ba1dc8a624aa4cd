package rowlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

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
			{rowlock.MinHold(time.Minute), rowlock.MaxHold(time.Second)},
			{rowlock.MaxHold(time.Second), rowlock.MinHold(time.Minute)},
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
