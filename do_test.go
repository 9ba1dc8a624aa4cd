package rowlock_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

type ownError struct{}

func (*ownError) Error() string { return "the application's own" }

func TestDoHoldsTheLockWhileFRuns(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		own := new(ownError)
		for _, want := range []error{nil, own} {
			ctx := context.WithValue(t.Context(), contextKey{}, "kept")
			err := c.Do(ctx, "k", func(ctx context.Context, l *rowlock.Lock) error {
				time.Sleep(10 * clienttest.TTL)
				if ctx.Err() != nil || ctx.Value(contextKey{}) != "kept" {
					t.Errorf("f's context: %v, value %v", ctx.Err(), ctx.Value(contextKey{}))
				}
				if r := clienttest.Record(t, s, "k"); !r.Held || r.Token != l.Token() ||
					!strings.HasSuffix(r.Note, "\tdo") {
					t.Errorf("while f runs the row is %+v", r)
				}
				return want
			}, rowlock.Note("do"))
			if err != want { //nolint:errorlint // f's error itself, not one that wraps it
				t.Errorf("Do: %#v, want f's error %#v", err, want)
			}
			if clienttest.IsHeld(t, s, "k") {
				t.Error("held after Do")
			}
		}
	})
}

func TestDoWaitsForTheKey(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		clienttest.Another(t, s, "k", clienttest.TTL)
		began := time.Now()
		if err := c.Do(t.Context(), "k",
			func(context.Context, *rowlock.Lock) error { return nil }); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took < clienttest.TTL {
			t.Errorf("took %v", took)
		}
		clienttest.Another(t, s, "k", 10*clienttest.TTL)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Do(ctx, "k", func(context.Context, *rowlock.Lock) error {
			t.Error("f runs without the lock")
			return nil
		})
		clienttest.WantIs(t, "Do", err, rowlock.ErrHeld, context.DeadlineExceeded)
	})
}

func TestDoEndsItsContextWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		s.OnRenew = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return nil, clienttest.ErrDown
		}
		c := clienttest.Client(t, s, nil)
		began := time.Now()
		own := new(ownError)
		err := c.Do(t.Context(), "k", func(ctx context.Context, l *rowlock.Lock) error {
			<-ctx.Done()
			synctest.Wait()
			if took := time.Since(began); took != clienttest.Trust {
				t.Errorf("ended after %v, want %v", took, clienttest.Trust)
			}
			clienttest.WantIs(t, "cause", context.Cause(ctx), rowlock.ErrLost)
			return own
		})
		clienttest.WantIs(t, "Do", err, rowlock.ErrLost, own)
	})
}

func TestDoEndsItsContextAtMaxHold(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		err := c.Do(t.Context(), "k", func(ctx context.Context, l *rowlock.Lock) error {
			<-ctx.Done()
			clienttest.WantIs(t, "cause", context.Cause(ctx), rowlock.ErrMaxHold)
			return nil
		}, rowlock.MaxHold(time.Minute))
		clienttest.WantIs(t, "Do", err, rowlock.ErrMaxHold)
		if clienttest.IsHeld(t, s, "k") {
			t.Error("held after Do")
		}
	})
}

// The caller's context ends. f's context ends with it, and the lock is held until f returns.
func TestDoEndsItsContextWithTheCallers(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		gone := errors.New("the request is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(gone) })
		err := c.Do(ctx, "k", func(ctx context.Context, l *rowlock.Lock) error {
			<-ctx.Done()
			clienttest.WantIs(t, "cause", context.Cause(ctx), gone)
			time.Sleep(10 * clienttest.TTL) // cleans up
			clienttest.WantAlive(t, l)
			if !clienttest.IsHeld(t, s, "k") {
				t.Error("released while f runs")
			}
			return ctx.Err()
		})
		clienttest.WantIs(t, "Do", err, context.Canceled)
		if errors.Is(err, rowlock.ErrLost) || clienttest.IsHeld(t, s, "k") {
			t.Errorf("Do: %v; held: %t", err, clienttest.IsHeld(t, s, "k"))
		}
	})
}

func TestDoReleasesWhenFPanicsOrExits(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		func() {
			defer func() {
				if p := recover(); p != "out of luck" {
					t.Errorf("recovered %v", p)
				}
			}()
			_ = c.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error { panic("out of luck") })
		}()
		if clienttest.IsHeld(t, s, "k") {
			t.Error("held after a panic")
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = c.Do(t.Context(), "k",
				func(context.Context, *rowlock.Lock) error { runtime.Goexit(); return nil })
		}()
		<-done
		if clienttest.IsHeld(t, s, "k") {
			t.Error("held after Goexit")
		}
	})
}

func TestDoWhoseFUnlocks(t *testing.T) {
	fenced(t, func(t *testing.T, c *rowlock.Client, s *clienttest.FencingStore) {
		if err := c.Do(t.Context(), "k", func(ctx context.Context, l *rowlock.Lock) error {
			return l.Unlock(ctx)
		}); err != nil {
			t.Errorf("with Unlock: %v", err)
		}
		if err := c.Do(t.Context(), "k", func(ctx context.Context, l *rowlock.Lock) error {
			tx := s.Begin()
			defer tx.Commit()
			return l.UnlockIn(ctx, tx)
		}); err != nil {
			t.Errorf("with UnlockTx: %v", err)
		}
	})
}

// f has returned. Its caller does not wait for a release that takes longer.
func TestDoReleasesInTheBackground(t *testing.T) {
	for _, want := range []error{nil, new(ownError)} {
		synctest.Test(t, func(t *testing.T) {
			s := clienttest.NewScript()
			began := time.Now()
			s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
				if time.Since(began) < time.Second {
					return nil, clienttest.ErrDown
				}
				return s.Store.Release(ctx, leases)
			}
			c := clienttest.Client(t, s, nil)
			if err := c.Do(t.Context(), "k",
				func(context.Context, *rowlock.Lock) error { return want }); !errors.Is(err, want) {
				t.Errorf("Do: %v, want %v", err, want)
			}
			time.Sleep(2 * time.Second)
			if clienttest.IsHeld(t, s, "k") {
				t.Error("not released in the background")
			}
		})
	}
}
