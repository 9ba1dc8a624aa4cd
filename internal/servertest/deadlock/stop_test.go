package deadlock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/servertest"
)

// three makes a ring of three chains, each in a process of its own.
func three(s *servertest.Scene, m servertest.Mode, name string, ttl time.Duration) *ring {
	s.Helper()
	r := &ring{name: name, n: 3}
	gather(s, m, ttl, r)
	r.hold()
	return r
}

// isRecorded reports whether a chain's wait has been recorded.
func (r *ring) isRecorded(i int) bool {
	s := r.crowd.s
	s.Helper()
	return s.Number(`SELECT count(*) FROM {rowlock_wait} WHERE {key} = ? AND token = 0`,
		[]byte(r.key(i+1))) > 0
}

// A process that stands still, before it has recorded its wait or after, is part of the cycle all
// the same: its lease is alive. Whichever process it is, the call that began last is the one that
// ends, during the stop or after; or its own, if its record was under way.
func TestACycleIsFoundAfterAProcessWasStopped(t *testing.T) {
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		for i := range 3 {
			for at, recorded := range []bool{false, true} {
				if i%2 == at == m.Fair { // half of them in each mode
					continue
				}
				name := fmt.Sprintf("process %d, recorded %v", i, recorded)
				s.Part(name, func(s *servertest.Scene) {
					s.Parallel()
					stopOne(s, three(s, m, fmt.Sprintf("%s of %s", name, m), ttl), i, recorded)
				})
			}
		}
	})
}

func stopOne(s *servertest.Scene, r *ring, i int, recorded bool) {
	s.Helper()
	r.wait()
	s.Elapse(apart) // the last call has begun
	if recorded {
		s.Eventually("the record", func() bool { return r.isRecorded(i) })
	}
	r.process(i).Pause()
	r.paused = append(r.paused, i)
	s.Elapse(3 * time.Second)
	r.wantUntouched()
	resumed := time.Now()
	r.process(i).Resume()
	e := r.next("a call to be ended")
	victim := r.wantTold(e)
	r.wantSoon(e.At.Sub(resumed), bound, "ended, after the process went on,")
	r.wantUntouched()
	r.dissolve(victim)
}

// A process that stands still for longer than its lease loses its lock: there is no cycle any more,
// and no call is told of one.
func TestAnExpiredLeaseIsNoPartOfACycle(t *testing.T) {
	const short = 4 * time.Second
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		r := threeWithoutARecord(s, m, short)
		e := r.next("the first waiter to be granted the expired lock")
		if e.Chain != r.chain(0) || e.Did != "granted" {
			s.Fatalf("%s: %s", e.Chain, e.Did)
		}
		r.send(0, "unlock")
		r.process(1).Resume()
		r.wantGoingOn(map[int]bool{0: true}, 1)
	})
}

// threeWithoutARecord stops the second process before it has recorded its wait. A machine that was
// too late for that begins anew: what was recorded is part of a cycle.
func threeWithoutARecord(s *servertest.Scene, m servertest.Mode, ttl time.Duration) *ring {
	s.Helper()
	for try := 1; ; try++ {
		r := three(s, m, fmt.Sprintf("expired %s, %d", m, try), ttl)
		r.wait()
		s.Elapse(apart)
		r.process(1).Pause()
		if !r.isRecorded(1) || try == 5 {
			return r
		}
		for _, p := range r.crowd.processes {
			p.Kill()
		}
	}
}

// wantGoingOn wants all chains but one, the loser, to be granted their keys and unlocked. The loser
// learns that its lock was lost.
func (r *ring) wantGoingOn(unlocking map[int]bool, loser int) {
	s := r.crowd.s
	s.Helper()
	told := loser < 0
	for unlocked := 0; unlocked < 2 || !told; {
		e := r.next("the others to go on")
		i := r.number(e)
		switch {
		case i == loser && e.Did != "deadlock" && e.Lost:
			told = true
			r.send(i, "unlock")
		case i == loser && told: // ErrLost again
		case i != loser && e.Did == "granted" && !unlocking[i]:
			unlocking[i] = true
			r.send(i, "unlock")
		case e.Did == "unlocked":
			unlocked++
		default:
			s.Fatalf("%s: %s, lost %v", e.Chain, e.Did, e.Lost)
		}
	}
}

// A process is killed at some moment. The others go on when its lease ends. None of them is told of
// a cycle that the dead process was part of when its records have expired.
func TestAKilledProcessIsSoonNoPartOfACycle(t *testing.T) {
	const short, life = 6 * time.Second, 1500 * time.Millisecond
	eachMode(t, func(s *servertest.Scene, m servertest.Mode) {
		s.Part("after", func(s *servertest.Scene) {
			for i, after := range []time.Duration{300, 900, 1100, 1300, 1500} {
				if i%2 == 0 == m.Fair { // some of them in each mode
					continue
				}
				after *= time.Millisecond
				s.Part(after.String(), func(s *servertest.Scene) {
					s.Parallel()
					r := three(s, m, fmt.Sprintf("killed after %s, %s", after, m), short)
					r.wait()
					s.Elapse(after)
					killed := time.Now()
					r.process(1).Kill()
					r.wantRest(killed, short, life+500*time.Millisecond)
				})
			}
		})
		s.Client(servertest.WithSweep(10 * time.Millisecond))
		s.Eventually("the records to be swept", func() bool { return records(s) == 0 })
	})
}

// wantRest wants chain 0 to be granted what the killed process had, and chain 2 to be granted what
// chain 0 has then, or to be ended before the killed process was forgotten.
func (r *ring) wantRest(killed time.Time, lease, known time.Duration) {
	s := r.crowd.s
	s.Helper()
	for unlocked := 0; unlocked < 2; {
		e := r.next("the others to go on")
		after := e.At.Sub(killed)
		switch i := r.number(e); {
		case e.Did == "deadlock" && i == 2 && after < r.crowd.pulse.Allow(known):
			s.Logf("ended %s after the kill", after.Round(time.Millisecond))
			r.send(i, "unlock")
		case e.Did == "granted":
			if i == 0 {
				r.wantSoon(after, lease+time.Second, "granted, after the kill,")
			}
			r.send(i, "unlock")
		case e.Did == "unlocked":
			unlocked++
		default:
			s.Fatalf("%s, %s after the kill: %s", e.Chain, after, strings.TrimSpace(e.Did))
		}
	}
}
