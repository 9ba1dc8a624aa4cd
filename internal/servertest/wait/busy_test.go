package wait

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// contender locks and unlocks a key all the time, from one goroutine.
type contender struct {
	grants atomic.Int64
}

// contend starts contenders, one for each client, which end with end. No two hold the key at once.
func contend(s *servertest.Scene, key string, clients ...*rowlock.Client) (all []*contender, end func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	var within atomic.Int64
	var running sync.WaitGroup
	for _, c := range clients {
		one := new(contender)
		all = append(all, one)
		running.Go(func() {
			for {
				l, err := c.Lock(ctx, key)
				if ctx.Err() != nil && err != nil {
					return
				}
				if s.OK(err); within.Add(1) > 1 {
					s.Error("two hold the key")
				}
				within.Add(-1)
				s.OK(l.Unlock(ctx))
				one.grants.Add(1)
			}
		})
	}
	return all, func() { cancel(); running.Wait() }
}

// inTurns is how many processes wait for their turn of key, as the table says. One may do without
// turns for a minute, because its connection took longer than a second on a busy machine.
func inTurns(s *servertest.Scene, key string) int64 {
	return s.Number(`SELECT count(*) FROM {rowlock_queue} WHERE {key} = ? AND note = 'turns'`, []byte(key))
}

// Processes that pass a key among them do not starve one that sends and hears no hints, and so has
// no turns.
func TestABusyKeyPassesInTurnsAndToProcessesWithoutTurns(t *testing.T) {
	eachWaking(t, func(s *servertest.Scene) {
		deaf := func(c *rowlock.Config) { c.Hints = rowlock.HintsOff }
		all, end := contend(s, "busy", s.Client(), s.Client(), s.Client(), s.Client(deaf))
		defer end()
		s.Eventually("turns", func() bool { return inTurns(s, "busy") >= 2 })
		for i, c := range all {
			began := c.grants.Load()
			s.Eventually("grants", func() bool { return c.grants.Load() >= began+20 })
			s.Logf("contender %d: %d grants", i, c.grants.Load())
		}
	})
}

// Nothing is left of the turns of a key that is no longer busy: its waiters are woken again.
func TestAKeyThatIsNoLongerBusyHasNoTurns(t *testing.T) {
	eachWaking(t, func(s *servertest.Scene) {
		clients := []*rowlock.Client{s.Client(), s.Client(), s.Client()}
		_, end := contend(s, "busy", clients...)
		s.Eventually("turns", func() bool { return inTurns(s, "busy") >= 2 })
		end()
		l := s.Take(clients[0], "busy")
		waiting := []<-chan got{
			waits(s, s.Context(), clients[1], "busy"), waits(s, s.Context(), clients[2], "busy"),
		}
		registered(s, "busy", 2)
		s.OK(l.Unlock(s.Context()))
		for range waiting {
			s.OK(anyOf(s, waiting).l.Unlock(s.Context()))
		}
	})
}
