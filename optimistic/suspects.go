package optimistic

import (
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// suspects are leases that a renewal found locked and that none has extended since. They are tried last and apart: a statement on many
// fails as a whole when one is locked, and the others, which nobody has locked, should not wait for that each time.
type suspects struct {
	mu    sync.Mutex
	since map[lease.Lease]time.Time
}

// suspicion ends for who has not been asked for in this time: it was given up.
const suspicion = time.Minute

// split returns the places of those that are none, and of those that are.
func (s *suspects) split(reqs []lease.RenewRequest) (clear, suspect []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear = make([]int, 0, len(reqs))
	for i, r := range reqs {
		if _, ok := s.since[r.Lease]; ok {
			suspect = append(suspect, i)
		} else {
			clear = append(clear, i)
		}
	}
	return clear, suspect
}

// learn takes in what each of a batch met: nil, that it is locked, or errUntried, which says nothing.
func (s *suspects) learn(reqs []lease.RenewRequest, tried []error) {
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

func (s *suspects) add(l lease.Lease) {
	if s.since == nil {
		s.since = make(map[lease.Lease]time.Time)
	}
	for other, at := range s.since {
		if time.Since(at) > suspicion {
			delete(s.since, other)
		}
	}
	s.since[l] = time.Now()
}
