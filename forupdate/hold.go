package forupdate

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// hold is a lock that this store holds: a connection whose transaction has the key's row.
type hold struct {
	conn  *lockConn
	lease lease.Lease
	over  bool // guarded by the connection's mutex
}

// of returns the hold of key, and its lease; nil if there is none.
func (s *Store) of(key string) (*hold, lease.Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.holds[key]; h != nil {
		return h, h.lease
	}
	return nil, lease.Lease{}
}

// mine returns the hold of a lease, nil if this store has none. Token 0 stands for any token of the
// owner.
func (s *Store) mine(l lease.Lease) *hold {
	h, held := s.of(l.Key)
	if h == nil || held.Owner != l.Owner || l.Token != 0 && held.Token != l.Token {
		return nil
	}
	return h
}

// keep turns a connection that has locked the row of a granted lease into a hold.
func (s *Store) keep(ctx context.Context, c *lockConn, l lease.Lease) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("%w: acquire %q", lease.ErrClosed, l.Key)
	}
	s.conns.count(-1, 1)
	s.holds[l.Key] = &hold{conn: c, lease: l}
	return nil
}

// let ends h's transaction, unless it has ended or now belongs to another lease than l. dead says
// that the connection must be discarded.
func (s *Store) let(ctx context.Context, h *hold, l lease.Lease, dead bool) {
	s.mu.Lock()
	if s.holds[l.Key] != h || h.lease != l {
		s.mu.Unlock()
		return
	}
	delete(s.holds, l.Key)
	s.mu.Unlock()
	s.end(ctx, h, dead)
}

func (s *Store) end(ctx context.Context, h *hold, dead bool) {
	h.conn.mu.Lock()
	h.over = true
	if dead {
		h.conn.session.Discard()
	} else {
		s.conns.rest(ctx, h.conn)
	}
	h.conn.mu.Unlock()
	s.conns.count(0, -1)
}

// proofTimeout bounds how long a renewal waits for a hold's connection to answer. A connection that
// is silent for longer is lost.
const proofTimeout = 2 * time.Second

// prove reports whether h's transaction still has its row.
func (s *Store) prove(ctx context.Context, h *hold, key string, ttl time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(proofTimeout, max(ttl/4, 250*time.Millisecond)))
	defer cancel()
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	return !h.over && h.conn.prove(ctx, key, ttl)
}

// evict clears a row that names a holder whose transaction is gone. It returns false if the row
// names another by now, or if a fence has locked it.
func (s *Store) evict(ctx context.Context, l lease.Lease) (bool, error) {
	n, err := s.keys.change(ctx, "acquire", l.Key, "hold-evict", []byte(l.Key), conn.Bytes(l.Owner), l.Token)
	return n > 0, err
}
