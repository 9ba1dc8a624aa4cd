package rowlock

import (
	"fmt"
	"testing"
)

var phaseNames = [phases]string{
	"live", "downgrading", "ended", "ending", "unclear", "released", "releasedEarly", "lingering",
}

var eventNames = [events]string{
	"Downgrade", "shared", "as before", "unknown", "end", "released by a transaction", "refusal", "claim",
	"MinHold", "take back",
}

// Whatever is not listed here is refused, and leaves the lock in its phase.
func TestStepsOfALock(t *testing.T) {
	want := map[phase]map[event]struct {
		to    phase
		lease place
	}{
		live: {
			onDowngrade: {downgrading, withHolder}, onEnd: {ended, inStore},
			onTxRelease: {released, gone}, onRefusal: {released, toCleaner},
		},
		downgrading: {
			onShared: {live, withHolder}, onAsBefore: {live, withHolder}, onUnknown: {unclear, inStore},
			onEnd: {ending, inStore}, onTxRelease: {releasedEarly, gone},
		},
		ended: {onClaim: {released, toRelease}},
		ending: {
			onShared: {ended, inStore}, onAsBefore: {ended, inStore}, onUnknown: {unclear, inStore},
			onClaim: {releasedEarly, toCleaner},
		},
		unclear:  {onClaim: {released, toCleaner}},
		released: {onMinHold: {lingering, toExpiry}},
		releasedEarly: {
			onShared: {released, toCleaner}, onAsBefore: {released, gone},
			onUnknown: {released, toCleaner},
		},
		lingering: {onTakeBack: {released, toRelease}},
	}
	for from := range phases {
		for e := range events {
			t.Run(fmt.Sprintf("%s, %s", phaseNames[from], eventNames[e]), func(t *testing.T) {
				to, due := from, nowhere
				if step, ok := want[from][e]; ok {
					to, due = step.to, step.lease
				}
				s := state{phase: from}
				if got := s.step(e); got != due || s.phase != to {
					t.Errorf("%s with place %d, want %s with %d", phaseNames[s.phase], got, phaseNames[to], due)
				}
			})
		}
	}
}

// A walk over all steps, with what a lease has gone through on the way: each is given away once,
// and from no phase is there a way on which it never is.
func TestEachLeaseGoesToOnePlace(t *testing.T) {
	type at struct {
		phase phase
		lease place
	}
	reached := map[at]bool{}
	var walk func(from at)
	walk = func(from at) {
		if reached[from] {
			return
		}
		reached[from] = true
		for e := range events {
			s := state{phase: from.phase}
			lease := s.step(e)
			if lease == nowhere {
				continue
			}
			by := fmt.Sprintf("%s, after place %d: %s", phaseNames[from.phase], from.lease, eventNames[e])
			switch lease {
			case withHolder:
				if from.lease != withHolder {
					t.Errorf("%s: a lease that has left its holder comes back", by)
				}
			case inStore:
				if from.lease != withHolder && from.lease != inStore {
					t.Errorf("%s: a lease that was given away is to be claimed", by)
				}
			case toRelease:
				if from.lease != inStore && from.lease != toExpiry {
					t.Errorf("%s: released, but it went elsewhere before", by)
				}
			case toCleaner:
				if from.lease == toRelease || from.lease == toExpiry {
					t.Errorf("%s: the cleaner gets what was released", by)
				}
			case toExpiry:
				if from.lease == toCleaner {
					continue // conclude makes no such step: see claim
				}
			}
			walk(at{s.phase, lease})
		}
	}
	walk(at{live, withHolder})
	for from := range reached {
		if from.lease != inStore {
			continue
		}
		s := state{phase: from.phase}
		if lease := s.step(onClaim); lease != toRelease && lease != toCleaner {
			t.Errorf("%s: a claim leaves the lease in the store", phaseNames[from.phase])
		}
	}
	for p := range phases {
		seen := false
		for from := range reached {
			seen = seen || from.phase == p
		}
		if !seen {
			t.Errorf("no lock is ever %s", phaseNames[p])
		}
	}
}
