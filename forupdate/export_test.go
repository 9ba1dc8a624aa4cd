package forupdate

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Look is how often a store looks after its holds.
func Look(d time.Duration) Option {
	return func(o *options) error {
		o.look = d
		return nil
	}
}

// With calls f with the server's id of the session that holds key, while that does nothing else,
// and returns the lease. ok says that this store holds key.
func (s *Store) With(ctx context.Context, key string, f func(id int64)) (l lease.Lease, ok bool, err error) {
	h, l := s.of(key)
	if h == nil {
		return l, false, nil
	}
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	if h.over {
		return l, false, nil
	}
	query := `SELECT pg_backend_pid()`
	if s.keys.d.Name() == "mysql" {
		query = `SELECT CONNECTION_ID()`
	}
	var id int64
	err = h.conn.session.Conn().QueryRowContext(ctx, query).Scan(&id)
	if err == nil {
		f(id)
	}
	return l, true, err
}
