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
	ctx context.Context, verb string, keys []string, f func(context.Context, *conn.Session) error,
) (err error) {
	switch {
	case s.d.Listener == nil || len(keys) == 0:
		return nil
	case s.d.Apart:
		err = s.ring(ctx, f)
	default:
		err = s.once(ctx, s.newOp(conn.Release, task{other: f}))
	}
	if err != nil {
		err = s.explain(verb, keys[0], err)
	}
	return err
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
