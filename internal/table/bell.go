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
	case s.d.Listener == nil || len(keys) == 0, s.d.Apart && s.hints.pool == nil:
		return nil // no connection can be spared: the waiters poll
	case s.d.Apart:
		ctx, cancel := context.WithTimeout(ctx, bellTimeout)
		defer cancel()
		err = s.hints.bell.use(ctx, f)
	default:
		err = s.once(ctx, s.newOp(conn.Release, task{other: f}))
	}
	if err != nil {
		err = s.explain(verb, keys[0], err)
	}
	return err
}
