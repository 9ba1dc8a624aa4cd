package rowlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

func TestCloseGivesEverythingBack(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		var locks []*rowlock.Lock
		for i := range 100 {
			locks = append(locks, take(t, c, fmt.Sprint("key ", i)))
		}
		another(t, s.Store, "k", ttl)
		waiting := wait(t, c, "k")
		began := time.Now()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wantIs(t, "a waiting Lock", (<-waiting).err, rowlock.ErrClosed)
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		for _, l := range locks {
			wantIs(t, "cause", context.Cause(l.Context()), rowlock.ErrUnlocked)
			if isHeld(t, s, l.Key()) {
				t.Errorf("%q is still held", l.Key())
			}
			wantIs(t, "Unlock after Close", l.Unlock(t.Context()), rowlock.ErrUnlocked)
		}
		if _, _, releases := s.asked(); releases != len(locks) {
			t.Errorf("%d releases of %d locks", releases, len(locks))
		}
		if err := c.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	})
}

func TestUseAfterClose(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := c.TryLock(t.Context(), "k")
		wantIs(t, "TryLock", err, rowlock.ErrClosed)
		_, err = c.Lock(t.Context(), "k")
		wantIs(t, "Lock", err, rowlock.ErrClosed)
		wantIs(t, "Do", c.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error {
			t.Error("f runs without a lock")
			return nil
		}), rowlock.ErrClosed)
		if acquires, _, _ := s.asked(); acquires != 0 {
			t.Errorf("%d requests after Close", acquires)
		}
	})
}

// Whoever closes the database after Close may do so after a second Close too, which came while the first was at work.
func TestEveryCloseReturnsWhenTheClientHasGone(t *testing.T) {
	bubble(t, func(t *testing.T, c *rowlock.Client, s *script) {
		take(t, c, "k")
		s.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			time.Sleep(time.Second)
			return s.Store.Release(ctx, leases)
		}
		var first sync.WaitGroup
		first.Go(func() { _ = c.Close() })
		synctest.Wait()
		if err := c.Close(); err != nil || isHeld(t, s, "k") {
			t.Errorf("the second Close: %v, held %t", err, isHeld(t, s, "k"))
		}
		first.Wait()
	})
}

func TestCloseSaysWhatItCouldNotGiveBack(t *testing.T) {
	for name, release := range map[string]func(context.Context, []lease.Lease) ([]lease.Released, error){
		"the call fails": func(context.Context, []lease.Lease) ([]lease.Released, error) { return nil, errDown },
		"one of two fails": func(_ context.Context, leases []lease.Lease) ([]lease.Released, error) {
			answers := make([]lease.Released, len(leases))
			answers[len(leases)-1].Err = errDown
			return answers, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.release = release
				var log journal
				cfg := &rowlock.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}
				cfg.Reaper.Off = true
				c, err := rowlock.New(s, cfg)
				if err != nil {
					t.Fatal(err)
				}
				take(t, c, "a")
				take(t, c, "b")
				wantIs(t, "Close", c.Close(), errDown)
				if name == "the call fails" && !strings.Contains(log.String(), errDown.Error()) {
					t.Errorf("logged: %s", log.String())
				}
			})
		})
	}
}

// The store is back after a moment; so long Close tries.
func TestCloseTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		back := time.Now().Add(3 * time.Second)
		s.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			if time.Now().Before(back) {
				return nil, errDown
			}
			return s.Store.Release(ctx, leases)
		}
		c := client(t, s, nil)
		take(t, c, "k")
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if late := time.Since(back); isHeld(t, s, "k") || late > time.Second {
			t.Errorf("closed %v after the store was back; the key is held: %t", late, isHeld(t, s, "k"))
		}
	})
}

// The store was granting while the client was closed. What it granted is given back before Close returns.
func TestLockWhileClosingLeavesNothing(t *testing.T) {
	for _, answered := range []time.Duration{time.Second, 3 * time.Second} {
		t.Run(fmt.Sprintf("closed after 2s, answered after %v", answered), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript()
				s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					answers, err := s.Store.Acquire(ctx, reqs)
					time.Sleep(answered)
					return answers, err
				}
				c := client(t, s, nil)
				done := make(chan waited, 1)
				go func() {
					l, err := c.Lock(t.Context(), "k")
					done <- waited{l, err}
				}()
				time.Sleep(2 * time.Second)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if isHeld(t, s, "k") {
					t.Error("the key is held after Close")
				}
				if got := <-done; got.err != nil {
					wantIs(t, "Lock", got.err, rowlock.ErrClosed)
				} else {
					wantIs(t, "cause", context.Cause(got.l.Context()), rowlock.ErrUnlocked)
				}
			})
		})
	}
}

// The answer comes while Close is giving back other locks.
func TestGrantWhileClosingLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.Acquire(ctx, reqs)
			time.Sleep(time.Second)
			return answers, err
		}
		s.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			time.Sleep(time.Second)
			return s.Store.Release(ctx, leases)
		}
		c := client(t, s, nil)
		take(t, c, "other")
		done := make(chan waited, 1)
		go func() {
			l, err := c.Lock(t.Context(), "k")
			done <- waited{l, err}
		}()
		time.Sleep(time.Second / 2)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		wantIs(t, "Lock", (<-done).err, rowlock.ErrClosed)
		if isHeld(t, s, "k") {
			t.Error("the key is held after Close")
		}
	})
}

// A store that never answers must not keep Close for ever.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.acquire = func(ctx context.Context, _ []lease.AcquireRequest) ([]lease.Acquired, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("%w: %w", lease.ErrUnknown, ctx.Err())
		}
		c := client(t, s, nil)
		go c.Lock(ctx, "k")
		time.Sleep(time.Second)
		began := time.Now()
		c.Close()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
}

// For the race detector: clients come and go under load, and nothing they held stays.
func TestLockAndCloseAtOnce(t *testing.T) {
	for range 20 {
		s := newScript()
		s.acquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.Acquire(ctx, reqs)
			<-time.After(rand.N(time.Millisecond))
			return answers, err
		}
		cfg := &rowlock.Config{TTL: time.Hour, PollMin: time.Microsecond, PollMax: 100 * time.Microsecond}
		c := client(t, s, cfg)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				for {
					l, err := c.Lock(context.Background(), fmt.Sprint(rand.N(8)))
					if err != nil {
						wantIs(t, "Lock", err, rowlock.ErrClosed)
						return
					}
					if rand.N(4) > 0 {
						_ = l.Unlock(context.Background())
					}
					if rand.N(100) == 0 {
						return
					}
				}
			})
		}
		<-time.After(rand.N(5 * time.Millisecond))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		records, err := s.Inspect(t.Context(), lease.Filter{Held: true})
		if err != nil || len(records) > 0 {
			t.Errorf("held after Close: %+v, %v", records, err)
		}
		wg.Wait()
	}
}

// A deferred Unlock and Close meet, as at the end of a program. What Unlock has begun Close waits for.
func TestUnlockWhileClosingLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		s.release = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
			time.Sleep(time.Second)
			return s.Store.Release(ctx, leases)
		}
		c := client(t, s, nil)
		l := take(t, c, "k")
		unlocked := make(chan error, 1)
		go func() { unlocked <- l.Unlock(t.Context()) }()
		time.Sleep(time.Second / 2)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if isHeld(t, s, "k") {
			t.Error("the key is held after Close")
		}
		if err := <-unlocked; err != nil {
			t.Errorf("Unlock: %v", err)
		}
	})
}
