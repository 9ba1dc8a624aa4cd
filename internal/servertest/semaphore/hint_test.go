package semaphore

import (
	"slices"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/semaphore"
)

// A waiter that has waited for long asks every 190 ms to 330 ms. On PostgreSQL it is told.
func TestAReleaseInAnotherProcessWakesAWaiterInMilliseconds(t *testing.T) {
	for _, m := range []servertest.Mode{{}, {Fair: true}} {
		t.Run(m.String(), func(t *testing.T) {
			servertest.On(t, "postgres", func(s *servertest.Scene) {
				what := "the grant of a slot to half of the waiters"
				servertest.AtOnce(s, 40*time.Millisecond, what, func() time.Duration {
					var took []time.Duration
					for range 9 {
						took = append(took, wake(s, m))
					}
					slices.Sort(took)
					s.Logf("%v", took)
					return took[len(took)/2]
				})
			})
		})
	}
}

// wake returns how long after its release a slot is granted to a waiter in another process. It
// begins to count when the test has heard of the release, which is as late as the waiter's hint on
// a machine that has other work.
func wake(s *servertest.Scene, m servertest.Mode) time.Duration {
	child := s.ChildIn(m, "hold", "none", time.Minute)
	defer child.Kill()
	child.Send("1")
	child.Send("1")
	child.Expect("holds")
	sem, err := semaphore.New(s.Client(m.Set), "s", 1)
	s.OK(err)
	granted := make(chan time.Time, 1)
	go func() {
		if p, err := sem.Acquire(s.Context(), 1); err != nil {
			s.Error(err)
		} else if err = p.Release(s.Context()); err != nil {
			s.Error(err)
		}
		granted <- time.Now()
	}()
	s.Elapse(time.Second) // until it asks rarely
	child.Send("release")
	child.Expect("done")
	released := time.Now()
	return (<-granted).Sub(released)
}
