package rowlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

func TestCloseReleasesEverything(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		var locks []*rowlock.Lock
		for i := range 100 {
			locks = append(locks, clienttest.Take(t, c, fmt.Sprint("key ", i)))
		}
		clienttest.Another(t, s.Store, "k", clienttest.TTL)
		waiting := clienttest.Wait(t, c, "k")
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		clienttest.WantIs(t, "a waiting Lock", (<-waiting).Err, rowlock.ErrClosed)
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		for _, l := range locks {
			clienttest.WantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
			if clienttest.IsHeld(t, s, l.Key()) {
				t.Errorf("%q is still held", l.Key())
			}
			clienttest.WantIs(t, "Unlock after Close", l.Unlock(t.Context()), rowlock.ErrUnlocked)
		}
		if _, _, releases := s.Calls(); releases != len(locks) {
			t.Errorf("%d releases of %d locks", releases, len(locks))
		}
		if err := c.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	})
}

func TestUseAfterClose(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := c.TryLock(t.Context(), "k")
		clienttest.WantIs(t, "TryLock", err, rowlock.ErrClosed)
		_, err = c.Lock(t.Context(), "k")
		clienttest.WantIs(t, "Lock", err, rowlock.ErrClosed)
		clienttest.WantIs(t, "Do", c.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error {
			t.Error("f runs without a lock")
			return nil
		}), rowlock.ErrClosed)
		if acquires, _, _ := s.Calls(); acquires != 0 {
			t.Errorf("%d requests after Close", acquires)
		}
	})
}

// A caller may close the database after any Close returns: a second Close, called while the first
// is at work, waits for it.
func TestEveryCloseReturnsWhenTheClientHasGone(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		clienttest.Take(t, c, "k")
		s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			time.Sleep(time.Second)
			return s.Store.Release(ctx, leases)
		}
		var first sync.WaitGroup
		first.Go(func() { _ = c.Close() })
		synctest.Wait()
		if err := c.Close(); err != nil || clienttest.IsHeld(t, s, "k") {
			t.Errorf("the second Close: %v, held %t", err, clienttest.IsHeld(t, s, "k"))
		}
		first.Wait()
	})
}

func TestCloseNamesWhatItCouldNotRelease(t *testing.T) {
	for name, release := range map[string]func(context.Context, []lease.Lease) ([]lease.Released, error){
		"the call fails": func(context.Context, []lease.Lease) ([]lease.Released, error) {
			return nil, clienttest.ErrDown
		},
		"one of two fails": func(_ context.Context, leases []lease.Lease) ([]lease.Released, error) {
			answers := make([]lease.Released, len(leases))
			answers[len(leases)-1].Err = clienttest.ErrDown
			return answers, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := clienttest.NewScript()
				s.OnRelease = release
				var log clienttest.Journal
				cfg := &rowlock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
				cfg.Reaper.Off = true
				c, err := rowlock.New(s, cfg)
				if err != nil {
					t.Fatal(err)
				}
				clienttest.Take(t, c, "a")
				clienttest.Take(t, c, "b")
				clienttest.WantIs(t, "Close", c.Close(), clienttest.ErrDown)
				if name == "the call fails" && !strings.Contains(log.String(), clienttest.ErrDown.Error()) {
					t.Errorf("logged: %s", log.String())
				}
			})
		})
	}
}

// The store is back after a moment; so long Close tries.
func TestCloseTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		back := time.Now().Add(3 * time.Second)
		s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			if time.Now().Before(back) {
				return nil, clienttest.ErrDown
			}
			return s.Store.Release(ctx, leases)
		}
		c := clienttest.Client(t, s, nil)
		clienttest.Take(t, c, "k")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if late := time.Since(back); clienttest.IsHeld(t, s, "k") || late > time.Second {
			t.Errorf("closed %v after the store was back; the key is held: %t", late,
				clienttest.IsHeld(t, s, "k"))
		}
	})
}

// Close releases what the store grants while the client closes, before it returns.
func TestLockWhileClosingLeavesNothing(t *testing.T) {
	for _, answered := range []time.Duration{time.Second, 3 * time.Second} {
		t.Run(fmt.Sprintf("closed after 2s, answered after %v", answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := clienttest.NewScript()
				s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					answers, err := s.Store.Acquire(ctx, reqs)
					time.Sleep(answered)
					return answers, err
				}
				c := clienttest.Client(t, s, nil)
				done := make(chan clienttest.Waited, 1)
				go func() {
					l, err := c.Lock(t.Context(), "k")
					done <- clienttest.Waited{Lock: l, Err: err}
				}()
				time.Sleep(2 * time.Second)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if clienttest.IsHeld(t, s, "k") {
					t.Error("the key is held after Close")
				}
				if got := <-done; got.Err != nil {
					clienttest.WantIs(t, "Lock", got.Err, rowlock.ErrClosed)
				} else {
					clienttest.WantIs(t, "cause", context.Cause(got.Lock.Context()), rowlock.ErrUnlocked)
				}
			})
		})
	}
}

// Close returns although the store never answers.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.OnAcquire = func(ctx context.Context, _ []lease.AcquireRequest) ([]lease.Acquired, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", lease.ErrUnknown, ctx.Err())
		}
		c := clienttest.Client(t, s, nil)
		go c.Lock(ctx, "k") //rowlockvet:ignore it fails, because Close ends it
		time.Sleep(time.Second)
		began := time.Now()
		c.Close()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}
