package election

import (
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// The times of both tests are logged as distributions. With more rounds:
//
//	ROWLOCK_FAILOVERS=100 scripts/with-servers postgres mariadb mysql -- \
//		go test ./internal/servertest/election -run 'TestFailover|TestHandOver' -v
func rounds() int { return servertest.FromEnvironment("ROWLOCK_FAILOVERS", 3) }

// A leader is killed. Another leads when the lease has run out, after a poll at the latest.
func TestFailoverWithinTheTTLAndAPoll(t *testing.T) {
	const ttl = 2 * time.Second
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		h := open(s, m, ttl)
		var times []time.Duration
		all := map[*candidate]bool{}
		for range 3 {
			all[h.candidate("candidate")] = true
		}
		last := h.leader()
		for range rounds() {
			killed := time.Now()
			last.by.Kill()
			delete(all, last.by)
			next := h.leader()
			if next.Term <= last.Term {
				s.Errorf("term %d follows term %d", next.Term, last.Term)
			}
			if next.At.After(killed) { // or the leader had lost its lease on a slow machine
				times = append(times, next.At.Sub(killed))
			}
			last = next
			all[h.candidate("candidate")] = true
		}
		for _, took := range times {
			if most := ttl + servertest.ChildPoll; took > most+slack {
				s.Errorf("another led %s after the kill, want at most %s", took, most)
			}
		}
		s.Logf("%s, %s, TTL %s, poll %s: another leads after kill -9: %s", s.Env.Name,
			m, ttl, servertest.ChildPoll, spread(times))
		for c := range all {
			h.close(c)
		}
	})
}

// A leader is asked to end. The next begins when it has ended, long before any lease runs out.
func TestHandOverOfALeaderThatEnds(t *testing.T) {
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		h := open(s, m, 30*time.Second)
		var times []time.Duration
		a, b := h.candidate("candidate"), h.candidate("candidate")
		last := h.leader()
		for range 3 * rounds() {
			last.by.Send("stop")
			ended := h.of(last.by, "ended")
			next := h.leader()
			if next.At.Before(ended.At) || next.Term <= last.Term {
				s.Errorf("term %d began %s after the end of term %d", next.Term, next.At.Sub(ended.At),
					last.Term)
			}
			times = append(times, next.At.Sub(ended.At))
			stopped := last.by
			if stopped == a {
				a = h.candidate("candidate")
			} else {
				b = h.candidate("candidate")
			}
			h.close(stopped)
			last = next
		}
		for _, took := range times {
			if most := h.ttl / 3; took > most {
				s.Errorf("the next leader began %s after the last, want at most %s", took, most)
			}
		}
		s.Logf("%s, %s, poll %s: the next leads after a graceful stop: %s", s.Env.Name, m, servertest.ChildPoll,
			spread(times))
		h.close(a, b)
	})
}

// A leader stands still for longer than its lease. It wakes as a leader of the past: its write is
// refused, and its lead has ended.
func TestALeaderThatWasStoppedIsFenced(t *testing.T) {
	const ttl = 3 * time.Second
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		h := open(s, m, ttl)
		a, b := h.candidate("candidate"), h.candidate("candidate")
		old := h.leader()
		old.by.Send("write")
		h.of(old.by, "wrote")
		stopped := time.Now()
		old.by.Pause()
		next := h.leader()
		s.Logf("another leads %s after the stop", next.At.Sub(stopped).Round(time.Millisecond))
		next.by.Send("write")
		wrote := h.of(next.by, "wrote")
		old.by.Send("write") // the first thing that it reads when it goes on
		old.by.Resume()
		if told := h.of(old.by, "told"); told.Term != old.Term || told.Why != "rowlock: lost" {
			s.Errorf("the leader of the past was told %q of term %d", told.Why, told.Term)
		}
		h.of(old.by, "ended")
		failed := h.of(old.by, "failed")
		if !strings.Contains(failed.Why, "lost") {
			s.Errorf("OnError was told %q", failed.Why)
		}
		fenced := 0
		for _, e := range h.soFar() {
			switch {
			case e.by == old.by && e.Did == "fenced" && e.Term == old.Term:
				fenced++
			case e.by == old.by && e.Did == "wrote" && e.N > wrote.N:
				s.Errorf("the leader of the past has written: %+v", e.event)
			}
		}
		if fenced == 0 {
			s.Error("no write of the leader of the past was refused")
		}
		// It stands again.
		next.by.Send("stop")
		if again := h.leader(); again.by != old.by || again.Term <= next.Term {
			s.Errorf("term %d follows term %d", again.Term, next.Term)
		}
		h.close(a, b)
	})
}

// A preferred candidate comes, and dies.
func TestAPreferredCandidateLeadsAmongProcesses(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		h := open(s, servertest.Mode{}, 3*time.Second)
		plain := h.candidate("plain")
		first := h.leader()
		best := h.candidate("preferred")
		told := h.of(first.by, "told")
		if !strings.Contains(told.Why, "preferred") {
			s.Errorf("the first leader was told %q", told.Why)
		}
		second := h.leader()
		if second.by != best || second.Term <= first.Term {
			s.Errorf("term %d follows term %d", second.Term, first.Term)
		}
		best.Kill()
		if third := h.leader(); third.by != plain || third.Term <= second.Term {
			s.Errorf("term %d follows term %d", third.Term, second.Term)
		}
		h.close(plain)
	})
}
