package table

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// confirmed returns the answer to an acquire or a claim that ended with an error. If the row was
// read to be the requester's, it reports the grant only after a later commit was acknowledged,
// because an earlier try may have made it without an acknowledged commit. It extends the lease to
// the request's TTL, because a claim may find a lease that was passed to it a while ago.
func (e *engine) confirmed(
	ctx context.Context, session *conn.Session, r *lease.AcquireRequest, a lease.Acquired,
	err error,
) (lease.Acquired, error) {
	var found sqlstore.FoundError
	if !errors.As(err, &found) {
		return a, err
	}
	l := lease.Lease{Key: r.Key, Owner: r.Owner, Token: found.Token}
	ok, err := sqlstore.Confirm(ctx, session, e.d, l, r.TTL)
	switch {
	case err != nil:
		return lease.Acquired{}, err
	case !ok:
		// The lease has expired or was released: look again
		return lease.Acquired{}, sqlstore.ErrRowShape
	}
	return lease.Acquired{Granted: true, Token: l.Token}, nil
}

// confirmAll answers Done for changes that were read to be made, by an earlier try of the same
// owners. One commit covers all of them, because they stand before it in the same server's log.
func (e *engine) confirmAll(
	ctx context.Context, session *conn.Session, changes []sqlstore.Change,
	applied []sqlstore.Applied,
) ([]sqlstore.Applied, error) {
	asked := false
	for i := range applied {
		if applied[i].Outcome != sqlstore.Found {
			continue
		}
		if !asked {
			l := lease.Lease{
				Key: changes[i].From.Key, Owner: changes[i].To,
				Token: applied[i].Token,
			}
			ok, err := sqlstore.Confirm(ctx, session, e.d, l, 0)
			if err == nil && !ok {
				err = sqlstore.ErrRowShape
			}
			if err != nil {
				return nil, err
			}
			asked = true
		}
		applied[i].Outcome = sqlstore.Done
	}
	return applied, nil
}
