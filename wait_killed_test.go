package rowlock_test

import (
	"testing"
	"time"
)

// Who waits for a holder that is killed has the key when its lease ends, and not much later.
func TestWhoWaitsForAKilledHolderGetsTheKeyWhenItsLeaseEnds(t *testing.T) {
	const ttl, poll = 600 * time.Millisecond, 50 * time.Millisecond
	eachMode(t, func(s *scene, m mode) {
		holder := s.childIn(m, "hold", "none", ttl)
		waiter := s.client(m.set, withPoll(poll))
		holder.say("killed")
		holder.expect("held")
		waiting := []<-chan got{s.waits(s.Context(), waiter, "killed"), s.waits(s.Context(), waiter, "killed")}
		s.stillWaits(ttl, waiting...) // it renews
		killed := time.Now()
		s.ok(holder.cmd.Process.Kill())
		first, next := s.either(waiting)
		if took, limit := first.at.Sub(killed), ttl+poll+waitSlack; took > limit {
			s.Errorf("granted %s after the kill, want at most %s", took, limit)
		} else {
			s.Logf("granted %s after the kill", took.Round(time.Millisecond))
		}
		s.ok(first.l.Unlock(s.Context()))
		s.ok(s.granted(next).l.Unlock(s.Context()))
	})
}
