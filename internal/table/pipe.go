package table

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

const (
	// mostPiped is how many ops are sent as plain statements with one commit. The statement for
	// many costs as much as a dozen of them, and little more for each.
	mostPiped = 16
	// unpipedFor is how many batches have no plain statements after one whose plain statements
	// were mostly in vain: of keys that are held, or have no row.
	unpipedFor = 8
)

// pipes reports whether n ops are to be tried by their plain statements first.
func (e *engine) pipes(session *sqlstore.Session, n int) bool {
	if e.d.Piper == nil || session.Wire == nil || n > mostPiped {
		return false
	}
	if e.unpiped.Load() <= 0 {
		return true
	}
	e.unpiped.Add(-1) // of two lanes at once, one may count below 0
	return false
}

// pipe sends the plain statements of ops together. left is what they could not do.
func (e *engine) pipe(ctx context.Context, session *sqlstore.Session, ops []*op) (
	left []*op, err error,
) {
	tried := len(ops)
	left, err = e.together(ctx, session, ops, func(ctx context.Context, session *sqlstore.Session,
		changes []sqlstore.Change,
	) ([]sqlstore.Applied, error) {
		return e.d.Piper.Pipe(ctx, session, e.strategy, changes)
	})
	if 2*len(left) > tried {
		e.unpiped.Store(unpipedFor)
	}
	return left, err
}
