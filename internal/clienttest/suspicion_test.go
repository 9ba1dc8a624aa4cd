package clienttest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// suspicions are what a client tells.
type suspicions struct {
	mu  sync.Mutex
	all []rowlock.Suspicion
	log strings.Builder
}

func (s *suspicions) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// want wants n of them, each with a line in the log, and returns the last.
func (s *suspicions) want(t *testing.T, n int) (last rowlock.Suspicion) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if lines := strings.Count(s.log.String(), "\n"); len(s.all) != n || lines != n {
		t.Errorf("%d suspicions and %d lines, want %d of each: %+v\n%s", len(s.all), lines, n, s.all, &s.log)
	}
	if len(s.all) > 0 {
		last = s.all[len(s.all)-1]
	}
	return last
}

// suspecting returns a client that tells s of its suspicions.
func suspecting(t *testing.T, store lease.Store, s *suspicions) *rowlock.Client {
	t.Helper()
	cfg := &rowlock.Config{Debug: true, Logger: slog.New(slog.NewTextHandler(s, nil))}
	cfg.Reaper.Off = true
	cfg.Hooks.Suspected = func(_ context.Context, told rowlock.Suspicion) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, told)
	}
	return Client(t, store, cfg)
}

// One goroutine holds the key, and waits for another of the same client, which waits for the key.
func TestAClientThatWaitsForItselfTellsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s suspicions
		store := memstore.New()
		c := suspecting(t, store, &s)
		l := Take(t, c, "k")
		waiting := Wait(t, c, "k")
		time.Sleep(5*time.Second - time.Millisecond)
		s.want(t, 0)
		time.Sleep(3 * time.Second)
		told := s.want(t, 1)
		if len(told.Waits) != 1 || told.Waits[0].Key != "k" || told.Waits[0].Token != l.Token() ||
			told.Waits[0].Waited < 5*time.Second || told.Incomplete {
			t.Errorf("it is told as %+v", told)
		}
		if len(told.Taken) != 1 || !strings.Contains(told.Taken[0], "clienttest.Take") {
			t.Errorf("the lock was taken by %q", told.Taken)
		}
		time.Sleep(10 * time.Minute)
		s.want(t, 1)
		WantAlive(t, l)
		Unlock(t, l)
		next := <-waiting
		WantIs(t, "the waiter", next.Err)

		waiting = Wait(t, c, "k")
		time.Sleep(8 * time.Second)
		if told = s.want(t, 2); told.Waits[0].Token != next.Lock.Token() {
			t.Errorf("another lock is told as %+v", told)
		}
		Unlock(t, next.Lock)
		next = <-waiting
		WantIs(t, "the next waiter", next.Err)
		Unlock(t, next.Lock)
	})
}

// A lock that is handed on in time is no suspicion, however long a call waits.
func TestAQueueThatMovesIsNotSuspected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s suspicions
		c := suspecting(t, memstore.New(), &s)
		Queue(t, c, "k", 10, 3*time.Second).Served.Wait()
		s.want(t, 0)
	})
}

// Processes that hold and wait in a ring, with contexts that say nothing: each tells it once.
func TestARingOfProcessesIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 3
		store := memstore.New()
		keys := []string{"a", "b", "c"}
		var told [n]suspicions
		var clients [n]*rowlock.Client
		var held [n]*rowlock.Lock
		var waiting [n]<-chan Waited
		for i := range clients {
			clients[i] = suspecting(t, store, &told[i])
			held[i] = Take(t, clients[i], keys[i])
		}
		for i, c := range clients {
			waiting[i] = Wait(t, c, keys[(i+1)%n])
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(12 * time.Second)
		for i := range clients {
			first := told[i].want(t, 1)
			if len(first.Waits) != n || len(first.Taken) != 1 {
				t.Errorf("client %d tells %+v", i, first)
				continue
			}
			for j, w := range first.Waits {
				next := (i + j + 1) % n
				if w.Key != keys[next] || w.Token != held[next].Token() || w.Waited < 5*time.Second {
					t.Errorf("client %d tells wait %d as %+v", i, j, w)
				}
			}
		}
		time.Sleep(5 * time.Minute)
		for i := range clients {
			told[i].want(t, 1)
			WantAlive(t, held[i])
			if len(waiting[i]) > 0 {
				t.Errorf("call %d has ended: %+v", i, <-waiting[i])
			}
		}
		for i := n - 1; i >= 0; i-- { // whom 0 waits for is granted last
			Unlock(t, held[i])
		}
		for i := range clients {
			w := <-waiting[i]
			WantIs(t, "a wait", w.Err)
			Unlock(t, w.Lock)
		}
	})
}

// A client that waits, and for which no other waits, has nothing to tell.
func TestALineOfProcessesIsNotSuspected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		var s suspicions
		first, second := suspecting(t, store, &s), suspecting(t, store, &s)
		a, b := Take(t, first, "a"), Take(t, second, "b")
		ctx, cancel := context.WithCancel(t.Context())
		waiting := WaitIn(t, ctx, first, "b")
		time.Sleep(time.Minute)
		s.want(t, 0)
		cancel()
		WantIs(t, "the waiter", (<-waiting).Err, context.Canceled)
		Unlock(t, a)
		Unlock(t, b)
	})
}

// A cycle that is larger than a reading is meant for is found as far as it was read, and that it
// is so large is told.
func TestACycleOfVeryManyIsFoundAndTold(t *testing.T) {
	race.Skip(t)
	synctest.Test(t, func(t *testing.T) {
		const n = 950
		var s suspicions
		c := suspecting(t, memstore.New(), &s)
		held := make([]*rowlock.Lock, n)
		for i := range held {
			held[i] = Take(t, c, fmt.Sprint("k", i))
		}
		ended := make(chan error, n)
		for i, l := range held {
			go func() {
				next, err := c.Lock(l.Context(), fmt.Sprint("k", (i+1)%n))
				if err == nil {
					err = next.Unlock(t.Context())
				}
				_ = l.Unlock(t.Context())
				ended <- err
			}()
			time.Sleep(time.Millisecond)
		}
		var broken int
		for range held {
			var d *rowlock.DeadlockError
			if err := <-ended; errors.As(err, &d) {
				if broken++; len(d.Cycle) != n {
					t.Errorf("a cycle of %d is told as one of %d", n, len(d.Cycle))
				}
			} else if err != nil {
				t.Error(err)
			}
		}
		if broken != 1 {
			t.Errorf("%d calls were ended", broken)
		}
		if n := c.Stats().Deadlocks; n != 1 {
			t.Errorf("%d deadlocks are counted", n)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.all) == 0 || !s.all[0].Incomplete || !strings.Contains(s.log.String(), "too many") {
			t.Errorf("it is told as %+v\n%s", s.all, &s.log)
		}
	})
}
