package table

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// The pauses between two questions whether the server has ended a session.
const firstLook, lastLook = 2 * time.Millisecond, 100 * time.Millisecond

// Settle returns when everything that runs has ended, at the server too, or with ctx. Until then,
// an acquire whose caller has left can be granted.
func (s *Store) Settle(ctx context.Context) {
	s.connections.Settle(ctx)
	for _, g := range s.connections.Dropped() {
		s.lay(ctx, g)
	}
}

// lay returns when the server has ended g, or with ctx. Where the server cannot be asked, that is
// when it must have.
func (s *Store) lay(ctx context.Context, g conn.Dropped) {
	ctx, cancel := context.WithDeadline(ctx, g.Until)
	defer cancel()
	for rest := firstLook; g.ID == 0 || s.runs(ctx, g.ID); rest = min(2*rest, lastLook) {
		if !retry.Sleep(ctx, rest) {
			return
		}
	}
	s.connections.Forget(g)
}

// runs reports whether the server may have the session.
func (s *Store) runs(ctx context.Context, session int64) bool {
	found := false
	_, err := ask(ctx, s.engine, about{conn.Renew, "settle", ""},
		func(ctx context.Context, on *conn.Session) (id int64, err error) {
			return id, on.Query(ctx, s.d.Text("session-ids"), nil, func(row conn.Columns) error {
				err := row[:1].Scan(&id) // MySQL's have more columns
				found = found || id == session
				return err
			})
		})
	return !errors.Is(err, lease.ErrClosed) && (err != nil || found)
}
