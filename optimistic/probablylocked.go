package optimistic

import (
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// probablyLocked has the leases that a renewal found locked and that none has extended since. They
// are tried last and one by one: a statement on many leases fails as a whole if one is locked, and
// the unlocked ones should not wait for that each time.
type probablyLocked struct {
	mu    sync.Mutex
	since map[lease.Lease]time.Time
}

// forgottenAfter is how long a lease must not have been asked for until it is forgotten, because it
// was released.
const forgottenAfter = time.Minute

// split returns the places of leases that are probably unlocked, and of the others.
func (s *probablyLocked) split(reqs []lease.RenewRequest) (clear, locked []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear = make([]int, 0, len(reqs))
	for i, r := range reqs {
		if _, ok := s.since[r.Lease]; ok {
			locked = append(locked, i)
		} else {
			clear = append(clear, i)
		}
	}
	return clear, locked
}

// learn takes the results of a batch: nil, an error of a locked row, or errUntried, which says
// nothing.
func (s *probablyLocked) learn(reqs []lease.RenewRequest, tried []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range reqs {
		switch tried[i] {
		case nil:
			delete(s.since, r.Lease)
		case errUntried:
		default:
			s.add(r.Lease)
		}
	}
}

func (s *probablyLocked) add(l lease.Lease) {
	if s.since == nil {
		s.since = make(map[lease.Lease]time.Time)
	}
	for other, at := range s.since {
		if time.Since(at) > forgottenAfter {
			delete(s.since, other)
		}
	}
	s.since[l] = time.Now()
}
