package paxosbridge_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/semaphore"
)

// client is a client on a bridge of its own, as another process has it.
func (r *rig) client(t *testing.T) *rowlock.Client {
	t.Helper()
	cfg := &rowlock.Config{}
	cfg.Reaper.Off = true
	c, err := rowlock.New(r.bridge(t, paxosbridge.Config{}), cfg)
	r.must(err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// held is which of the keys the bridge lists as held.
func (r *rig) held(keys ...string) (held []string) {
	r.Helper()
	rows, err := r.Inspect(context.Background(), lease.Filter{Keys: keys, Held: true})
	r.must(err)
	for _, row := range rows {
		held = append(held, row.Key)
	}
	return held
}

// Keys in the table and keys in the cluster are locked together or not at all, and a call that
// waits gets them when the last one is released, wherever it is.
func TestKeysOfBothPlacementsAreLockedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		a, b := r.client(t), r.client(t)
		keys := []string{"away", "here", "hot"}
		for _, key := range []string{"away", "hot"} {
			r.must(r.MoveOut(t.Context(), key, "hot"))
		}
		for _, key := range keys {
			one, err := b.Lock(t.Context(), key)
			r.must(err)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			_, err = a.LockAll(ctx, keys)
			cancel()
			if !errors.Is(err, rowlock.ErrHeld) || len(r.held(keys...)) != 1 {
				t.Fatalf("%v; held: %q", err, r.held(keys...))
			}
			time.AfterFunc(time.Second, func() { _ = one.Unlock(context.Background()) })
			ls, err := a.LockAll(t.Context(), keys)
			r.must(err)
			if n := len(r.held(keys...)); n != 3 || lease.Epoch(ls.Lock("hot").Token())%2 != 1 {
				t.Errorf("held: %q", r.held(keys...))
			}
			time.Sleep(5 * time.Minute) // both are renewed
			if ls.Context().Err() != nil {
				t.Error(context.Cause(ls.Context()))
			}
			r.must(ls.Unlock(t.Context()))
			if left := r.held(keys...); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		}
	})
}

// Two calls with the keys of both placements in opposite orders never keep each other waiting.
func TestCallsForKeysOfBothPlacementsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		r.must(r.MoveOut(t.Context(), "hot", "hot"))
		done := make(chan error)
		orders := [][]string{{"hot", "here"}, {"here", "hot"}, {"here", "other"}, {"hot"}}
		for i := range orders {
			c := r.client(t)
			go func() {
				var err error
				for range 30 {
					var ls *rowlock.Locks
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
					if ls, err = c.LockAll(ctx, orders[i]); err == nil {
						time.Sleep(time.Duration(1+i) * time.Millisecond)
						err = ls.Unlock(ctx)
					}
					if cancel(); err != nil {
						break
					}
				}
				done <- err
			}()
		}
		for range orders {
			r.must(<-done)
		}
	})
}

// A cluster knows neither readers nor limits: what needs them is refused before anything is
// written.
func TestWhatABridgeCannotHoldIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, paxosbridge.Config{})
		r.must(r.MoveOut(t.Context(), "hot", "hot"))
		c := r.client(t)
		sem, err := semaphore.New(c, "reports", 2)
		r.must(err)
		for _, keys := range [][]string{{"here"}, {"hot"}, {"here", "hot"}} {
			_, err := c.RLockAll(t.Context(), keys)
			r.wantIs(err, rowlock.ErrUnsupported)
		}
		_, err = sem.Acquire(t.Context(), 1)
		r.wantIs(err, rowlock.ErrUnsupported)
		rows, err := r.table.Inspect(t.Context(), lease.Filter{})
		r.must(err)
		if len(rows) != 1 { // that of the key that was moved
			t.Errorf("written: %+v", rows)
		}
	})
}
