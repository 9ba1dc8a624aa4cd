package deadlock

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// ttl is the default, and bound within what a cycle is broken after its last call began, on a
// machine that is not late: see servertest.Pulse.
const (
	ttl   = 30 * time.Second
	bound = 2*time.Second + ttl/10
)

// modes are those that differ in how a call waits.
var modes = []servertest.Mode{{}, {Fair: true}}

// eachMode runs f on every database, the databases side by side.
func eachMode(t *testing.T, f func(s *servertest.Scene, m servertest.Mode)) {
	t.Helper()
	servertest.Each(t, func(s *servertest.Scene) {
		for _, m := range modes {
			s.Part(m.String(), func(s *servertest.Scene) { f(s, m) })
		}
	})
}

// Six rings at once, in three processes: each loses the call that began last, and nothing else.
func TestACycleOfProcessesEndsWithTheCallThatBeganLast(t *testing.T) {
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		var rings []*ring
		for _, n := range []int{2, 3, 10} {
			for _, all := range []bool{false, true} {
				rings = append(rings, &ring{name: fmt.Sprintf("ring of %d, all %v", n, all), n: n, all: all})
			}
		}
		gather(s, m, ttl, rings...)
		for _, r := range rings {
			r.hold()
		}
		var waiting sync.WaitGroup
		for _, r := range rings {
			waiting.Go(r.wait)
		}
		waiting.Wait()
		for _, r := range rings {
			e := r.next("a call to be ended")
			r.victim = r.wantTold(e)
			r.wantSoon(e.At.Sub(e.Began), bound, r.name+" ended, after its last call began,")
			r.wantUntouched()
		}
		s.Elapse(time.Second) // in which no other call ends
		for _, r := range rings {
			r.wantUntouched()
			if len(r.events) > 0 {
				s.Fatalf("%s: another call has ended: %+v", r.name, <-r.events)
			}
			r.dissolve(r.victim)
		}
		awaitErased(s, rings[0].crowd.pulse)
	})
}
