package lane

import (
	"slices"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// Ghost is what the server may still run on a connection that a lane has dropped: a statement that
// took too long, or whose caller has left. To close a connection stops nothing at the server, and a
// request to cancel may come too late.
type Ghost struct {
	ID    int64     // of the server's session; 0: not known
	Until time.Time // when the server has ended it at the latest
}

// haunts is how long a server may run what it has got. The session's own statement and lock
// timeouts bound it.
const haunts = 6 * time.Second

type ghosts struct {
	mu  sync.Mutex
	all []Ghost
}

// add notes a connection that is being dropped.
func (g *ghosts) add(s *sqlstore.Session) {
	if s.Local {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget()
	g.all = append(g.all, Ghost{s.ID, time.Now().Add(haunts)})
}

// forget forgets those that are over.
func (g *ghosts) forget() {
	g.all = slices.DeleteFunc(g.all, func(one Ghost) bool { return time.Now().After(one.Until) })
}

// Ghosts returns what may still have an effect although Settle has returned.
func (s *Set[T]) Ghosts() []Ghost {
	s.ghosts.mu.Lock()
	defer s.ghosts.mu.Unlock()
	s.ghosts.forget()
	return slices.Clone(s.ghosts.all)
}

// Laid forgets a ghost that the server has ended.
func (s *Set[T]) Laid(one Ghost) {
	s.ghosts.mu.Lock()
	defer s.ghosts.mu.Unlock()
	s.ghosts.all = slices.DeleteFunc(s.ghosts.all, func(g Ghost) bool { return g == one })
}
