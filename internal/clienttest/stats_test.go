package clienttest

import (
	"context"
	"fmt"
	"log/slog"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

func TestStatsCountWhatHappens(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		if got := c.Stats(); got != (rowlock.Stats{}) {
			t.Errorf("at the beginning: %+v", got)
		}
		l := Take(t, c, "k")
		_, err := c.TryLock(t.Context(), "k")
		WantIs(t, "TryLock", err, rowlock.ErrHeld)
		first, second := Wait(t, c, "k"), Wait(t, c, "k")
		time.Sleep(time.Second) // it listens from the first poll on
		got := c.Stats()
		if got.Held != 1 || got.Waiting != 2 || got.Acquired != 1 || got.Contended != 2 {
			t.Errorf("one holds and two wait: %+v", got)
		}
		if got.Listening != 1 || got.HintsHeard == 0 {
			t.Errorf("a waiter does not listen: %+v", got)
		}
		Unlock(t, l)
		next := (<-first).Lock
		synctest.Wait()
		if got := c.Stats(); got.Held != 1 || got.Waiting != 1 || got.Released != 1 {
			t.Errorf("after a hand-over: %+v", got)
		}
		Unlock(t, next)
		Unlock(t, (<-second).Lock)
		time.Sleep(time.Minute)
		if got := c.Stats(); got.Waiting != 0 || got.Listening != 0 || got.Held != 0 ||
			got.Acquired != 3 || got.Released != 3 {
			t.Errorf("a minute later: %+v", got)
		}
		heard := c.Stats().HintsHeard
		WantIs(t, "Close", c.Close())
		if got := c.Stats(); got.HintsHeard != heard || got.Acquired != 3 {
			t.Errorf("after Close: %+v", got)
		}
	})
}

// A waiter that gives up, and one that the closing of its client ends, wait no more.
func TestWaitersThatLeaveAreNotCounted(t *testing.T) {
	for name, fair := range map[string]bool{"": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				c := Client(t, s, &rowlock.Config{Fair: fair, Reaper: rowlock.ReaperConfig{Off: true}})
				Another(t, s, "k", time.Hour)
				ctx, cancel := context.WithCancel(t.Context())
				left, closed := WaitIn(t, ctx, c, "k"), Wait(t, c, "k")
				if n := c.Stats().Waiting; n != 2 {
					t.Errorf("%d calls wait, want 2", n)
				}
				cancel()
				WantIs(t, "Lock", (<-left).Err, context.Canceled)
				if n := c.Stats().Waiting; n != 1 {
					t.Errorf("%d calls wait, want 1", n)
				}
				WantIs(t, "Close", c.Close())
				WantIs(t, "Lock", (<-closed).Err, rowlock.ErrClosed)
				if n := c.Stats().Waiting; n != 0 {
					t.Errorf("%d calls wait after Close", n)
				}
			})
		})
	}
}

func TestStatsCountRenewals(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		var down atomic.Bool
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if down.Load() {
				return nil, ErrDown
			}
			return s.Store.Renew(ctx, reqs)
		}
		Take(t, c, "a")
		Take(t, c, "b")
		time.Sleep(TTL / 3)
		if got := c.Stats(); got.Renewals != 1 || got.Renewed != 2 || got.RenewFailed != 0 {
			t.Errorf("after a renewal of two: %+v", got)
		}
		down.Store(true)
		time.Sleep(TTL / 3)
		if got := c.Stats(); got.Renewals != 1 || got.RenewFailed < 2 {
			t.Errorf("after one that failed: %+v", got)
		}
	})
}

// As when the tables were dropped: the renewals of each lock fail until it ends.
func TestAnOutageOfRenewalsIsLoggedEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := NewScript(), new(Journal)
		s.OnRenew = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) { return nil, ErrDown }
		cfg := &rowlock.Config{Logger: slog.New(slog.NewTextHandler(log, nil))}
		cfg.Reaper.Off = true
		c := Client(t, s, cfg)
		<-Take(t, c, "k").Context().Done()
		synctest.Wait()
		failed, lines := c.Stats().RenewFailed, strings.Count(log.String(), "renewal failed")
		if most := bits.Len64(uint64(failed)); failed < 6 || lines < 3 || lines > most {
			t.Errorf("%d failures have %d lines, want 3 to %d", failed, lines, most)
		}
		if !strings.Contains(log.String(), "times=1 ") || !strings.Contains(log.String(), "times=4 ") {
			t.Errorf("the lines do not count: %s", log)
		}
	})
}

func TestStatsAllocateNothing(t *testing.T) {
	c := Client(t, NewScript(), nil)
	Take(t, c, "k")
	if n := testing.AllocsPerRun(100, func() { c.Stats() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// A collector reads while callers work. Held never falls below 0, nor above the locks that there
// are, and no counter falls.
func TestStatsAreReadWhileCallersWork(t *testing.T) {
	c := Client(t, NewScript(), nil)
	const workers, pairs = 4, 200
	var working sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for range pairs {
				l, err := c.Lock(t.Context(), fmt.Sprint(w%2))
				if err != nil {
					t.Error(err)
					return
				}
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	defer working.Wait()
	for last := (rowlock.Stats{}); ; {
		now := c.Stats()
		if now.Held < 0 || now.Held > workers || now.Waiting < 0 || now.Waiting > workers ||
			now.Acquired < last.Acquired || now.Released < last.Released {
			t.Fatalf("%+v, after %+v", now, last)
		}
		last = now
		select {
		case <-done:
			if now = c.Stats(); now.Acquired != workers*pairs || now.Held != 0 || now.Waiting != 0 {
				t.Errorf("at the end: %+v", now)
			}
			return
		default:
		}
	}
}
