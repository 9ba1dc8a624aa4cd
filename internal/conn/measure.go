package conn

import (
	"sync/atomic"

	"github.com/rowlockdb/rowlock/internal/adapter"
)

// counts are what the connections of a set have done. Each connection adds to them by itself,
// because the set's mutex is the busiest of the client.
type counts struct {
	open, batches, ops, statements atomic.Int64
}

// Measure returns what the connections do and have done.
func (s *Set[T]) Measure() adapter.Measures {
	m := adapter.Measures{
		Connections: s.counts.open.Load(), Batches: s.counts.batches.Load(),
		Requests: s.counts.ops.Load(), Statements: s.counts.statements.Load(),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.conns {
		if l.busy {
			m.Busy++
		}
	}
	return m
}
