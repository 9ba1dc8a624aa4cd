package bidq_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/semaphore"
)

// A caller that leaves before its process's turn comes bids at once: it would never bid otherwise.
func TestCallsThatWaitForLessThanARoundGetTheKeyAsOftenAsWithoutTurns(t *testing.T) {
	race.Skip(t)
	const limit, pause = 20 * time.Millisecond, 100 * time.Millisecond
	granted := make(map[bool]int)
	for _, turns := range []bool{true, false} {
		scene(t, func(t *testing.T, s *server) {
			if !turns {
				s.refuses = lease.ErrUnsupported
			}
			var clients []*rowlock.Client
			for range 8 {
				clients = append(clients, s.client(t))
			}
			_, end := contend(t, "key", 0, clients...)
			defer end()
			time.Sleep(2 * time.Second)
			c := s.client(t)
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				l, err := c.Lock(ctx, "key")
				if cancel(); err == nil {
					granted[turns]++
					_ = l.Unlock(t.Context())
				}
				time.Sleep(pause + rand.N(pause))
			}
		})
	}
	t.Logf("of 300 calls %d with turns, %d without", granted[true], granted[false])
	if granted[true] < granted[false]/2 {
		t.Errorf("%d calls got the key, and %d without turns", granted[true], granted[false])
	}
}

// Its callers hand the key over among them again, and its session ends.
func TestAProcessThatIsLeftAloneWithAKeyTakesNoMoreTurns(t *testing.T) {
	for _, goroutines := range []int{1, 3} {
		scene(t, func(t *testing.T, s *server) {
			one, two := s.client(t), s.client(t)
			_, end := contend(t, "key", 0, slices.Repeat([]*rowlock.Client{one}, goroutines)...)
			defer end()
			_, last := contend(t, "key", 0, slices.Repeat([]*rowlock.Client{two}, goroutines)...)
			time.Sleep(3 * time.Second)
			if s.queued() == 0 {
				t.Error("they take no turns")
			}
			last()
			time.Sleep(15 * time.Second)
			asked := s.asked
			time.Sleep(2 * time.Second)
			if n := s.queued(); n > 0 || s.asked > asked {
				t.Errorf("with %d goroutines, %d sessions queue, %d times in 2 s", goroutines, n, s.asked-asked)
			}
		})
	}
}

// A slot has no waiters. Its turns would take a session, keep turns from other keys, and keep a
// release from waking those that wait for any slot.
func TestSlotsOfALimitHaveNoTurns(t *testing.T) {
	scene(t, func(t *testing.T, s *server) {
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 6 {
			sem, err := semaphore.New(s.client(t), "sem", 2)
			if err != nil {
				t.Fatal(err)
			}
			running.Go(func() {
				for ctx.Err() == nil {
					if p, err := sem.Acquire(ctx, 1); err == nil {
						time.Sleep(time.Millisecond)
						_ = p.Release(context.WithoutCancel(ctx))
					}
				}
			})
		}
		time.Sleep(time.Duration(race.Few(2, 10)) * time.Second)
		cancel()
		running.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		for key := range s.lines {
			if key != semaphore.TurnKey("sem") {
				t.Errorf("processes have queued for %q", key)
			}
		}
	})
}
