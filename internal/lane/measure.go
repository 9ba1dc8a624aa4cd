package lane

import (
	"sync/atomic"

	"github.com/rowlockdb/rowlock/internal/seam"
)

// counts are what the lanes of a set have done. Each lane adds to them by itself, because the set's
// mutex is the busiest of the client.
type counts struct {
	open, batches, ops, statements atomic.Int64
}

// Measure returns what the lanes do and have done.
func (s *Set[T]) Measure() seam.Measures {
	m := seam.Measures{
		Lanes: s.counts.open.Load(), Batches: s.counts.batches.Load(),
		Requests: s.counts.ops.Load(), Statements: s.counts.statements.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lanes {
		if l.busy {
			m.Busy++
		}
	}
	return m
}
