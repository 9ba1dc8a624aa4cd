package deadlock

import (
	"context"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Two processes that hold and wait in a ring, with contexts that do not tell: each tells it, with
// both programs, and neither call is ended.
func TestARingWithoutContextsIsToldByEachProcess(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		told, pulse := make(chan rowlock.Suspicion, 10), s.Pulse()
		suspecting := func(name string) *rowlock.Client {
			return s.Client(func(cfg *rowlock.Config) {
				cfg.Identity = name
				cfg.Hooks.Suspected = func(_ context.Context, it rowlock.Suspicion) { told <- it }
			})
		}
		one, two := suspecting("one"), suspecting("two")
		a, b, old := s.Take(one, "a"), s.Take(two, "b"), s.Take(s.Client(), "old")
		waitOld := servertest.Aside(func() error { return lockOnce(s, two, "old") })
		s.Elapse(3 * time.Second) // what a process waits for is told, and not its oldest wait
		began := time.Now()
		waitA := servertest.Aside(func() error { return lockOnce(s, two, "a") })
		waitB := servertest.Aside(func() error { return lockOnce(s, one, "b") })
		for range 2 {
			it := servertest.Await(s, servertest.Patience, told, "a suspicion")
			if len(it.Waits) != 2 || it.Waits[0].Identity == it.Waits[1].Identity ||
				it.Waits[0].Key == it.Waits[1].Key || it.Waits[0].Waited <= 0 {
				s.Errorf("it is told as %+v", it)
			}
			for _, l := range it.Waits {
				if most := time.Since(began) + time.Second; l.Waited > most {
					s.Errorf("%s is said to have waited %s for %q, of %s at most", l.Identity, l.Waited, l.Key, most)
				}
			}
		}
		s.OK(a.Unlock(s.Context()))
		s.OK(servertest.Await(s, servertest.Patience, waitA, "the call for a"))
		s.OK(b.Unlock(s.Context()))
		s.OK(servertest.Await(s, servertest.Patience, waitB, "the call for b"))
		s.OK(old.Unlock(s.Context()))
		s.OK(servertest.Await(s, servertest.Patience, waitOld, "the call for old"))
		awaitErased(s, pulse)
	})
}

// awaitErased waits until no record is left. On a machine that was seconds late, a record may have
// been written after its erasure: it has to expire, and is left to a sweep.
func awaitErased(s *servertest.Scene, pulse *servertest.Pulse) {
	s.Helper()
	s.Eventually("the records to be erased", func() bool {
		return records(s) == 0 || pulse.Longest() > time.Second &&
			s.Number(`SELECT count(*) FROM {rowlock_wait} WHERE alive_until > {now}`) == 0
	})
}

func lockOnce(s *servertest.Scene, c *rowlock.Client, key string) error {
	l, err := c.Lock(s.Context(), key)
	if err != nil {
		return err
	}
	return l.Unlock(s.Context())
}
