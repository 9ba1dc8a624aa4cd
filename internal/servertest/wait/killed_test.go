package wait

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// A waiter for a killed holder has the key when the lease ends, and not much later.
func TestAWaiterForAKilledHolderGetsTheKeyWhenItsLeaseEnds(t *testing.T) {
	const ttl, poll = 1200 * time.Millisecond, 50 * time.Millisecond
	servertest.EachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		holder := s.ChildIn(m, "hold", "none", ttl)
		waiter, pulse := s.Client(m.Set, servertest.WithPoll(poll)), s.Pulse()
		holder.Send("killed")
		holder.Expect("held")
		waiting := []<-chan got{
			waits(s, s.Context(), waiter, "killed"), waits(s, s.Context(), waiter, "killed"),
		}
		stillWaits(s, ttl, waiting...) // it renews
		killed := time.Now()
		s.OK(holder.Cmd.Process.Kill())
		first, next := either(s, waiting)
		if took, limit := first.at.Sub(killed), pulse.Allow(ttl+poll+waitSlack); took > limit {
			s.Errorf("granted %s after the kill, want at most %s", took, limit)
		} else {
			s.Logf("granted %s after the kill", took.Round(time.Millisecond))
		}
		s.OK(first.l.Unlock(s.Context()))
		s.OK(granted(s, next).l.Unlock(s.Context()))
	})
}
