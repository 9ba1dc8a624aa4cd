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

// A process that sends and hears no notification is not starved by those that wake one another, and
// does not starve them. On a machine with other work it has twenty times as many grants as they.
func TestABusyKeyPassesToAllProcesses(t *testing.T) {
	eachWaking(t, func(s *servertest.Scene) {
		deaf := func(c *rowlock.Config) { c.Hints = rowlock.HintsOff }
		all, end := contend(s, "busy", s.Client(), s.Client(), s.Client(), s.Client(deaf))
		defer end()
		for i, c := range all {
			began := c.grants.Load()
			s.Eventually("grants", func() bool { return c.grants.Load() >= began+5 })
			s.Logf("contender %d: %d grants", i, c.grants.Load())
		}
	})
}
