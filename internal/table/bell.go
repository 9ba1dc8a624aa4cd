package table

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
)

// bellTimeout bounds a message. The waiters poll if it is not sent by then.
const bellTimeout = 500 * time.Millisecond

// send runs f, which sends a message, on a pinned connection or, where to send one may wait, on the
// bell: a session that is neither a pinned connection nor one that hears.
func (s *Store) send(
	ctx context.Context, f func(ctx context.Context, session *conn.Session) error,
) error {
	if s.d.Apart {
		return s.ring(ctx, f)
	}
	return s.once(ctx, s.newOp(conn.Release, task{other: f}))
}

func (s *Store) ring(
	ctx context.Context, f func(ctx context.Context, session *conn.Session) error,
) error {
	if s.hints.pool == nil {
		return nil // no connection can be spared: the waiters poll
	}
	ctx, cancel := context.WithTimeout(ctx, bellTimeout)
	defer cancel()
	return s.hints.bell.use(ctx, f)
}
