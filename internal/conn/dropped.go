package conn

import (
	"slices"
	"sync"
	"time"
)

// Dropped is a session whose connection was closed while the server may still run a statement of
// it: one that took too long, or whose caller has left. To close a connection stops nothing at the
// server, and a request to cancel may come too late.
type Dropped struct {
	ID    int64     // of the server's session; 0: not known
	Until time.Time // when the server has ended it at the latest
}

// outlives is how long a server may run what it has got. The session's own statement and lock
// timeouts bound it.
const outlives = 6 * time.Second

type dropped struct {
	mu  sync.Mutex
	all []Dropped
}

// add notes a connection that is being dropped.
func (d *dropped) add(s *Session) {
	if s.Local {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
	d.all = append(d.all, Dropped{s.ID, time.Now().Add(outlives)})
}

// forget forgets those that are over.
func (d *dropped) forget() {
	d.all = slices.DeleteFunc(d.all, func(one Dropped) bool { return time.Now().After(one.Until) })
}

// Dropped returns what may still have an effect although Settle has returned.
func (s *Set[T]) Dropped() []Dropped {
	s.dropped.mu.Lock()
	defer s.dropped.mu.Unlock()
	s.dropped.forget()
	return slices.Clone(s.dropped.all)
}

// Forget forgets one that the server has ended.
func (s *Set[T]) Forget(one Dropped) {
	s.dropped.mu.Lock()
	defer s.dropped.mu.Unlock()
	s.dropped.all = slices.DeleteFunc(s.dropped.all, func(d Dropped) bool { return d == one })
}
