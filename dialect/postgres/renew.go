package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Renew renews a batch in one statement.
func (d *database) Renew(ctx context.Context, s *conn.Session, reqs []lease.RenewRequest) (
	[]lease.Renewed, error,
) {
	out := make([]lease.Renewed, 0, len(reqs))
	err := s.Query(ctx, d.Text("renew"), renewArrays(reqs), func(row conn.Columns) error {
		var outcome, clock, remaining int64
		if err := row.Scan(&outcome, &clock, &remaining); err != nil {
			return err
		}
		out = append(out, lease.Renewed{
			Outcome: lease.RenewOutcome(outcome), Clock: conn.Duration(clock),
			Remaining: conn.Duration(remaining),
		})
		return nil
	})
	if err == nil && len(out) != len(reqs) {
		err = fmt.Errorf("renew: %d answers to %d requests", len(out), len(reqs))
	}
	return out, err
}

// Release clears the owner of one row, and reports whether another process waits for it. It is a
// transaction of its own, so that its commit may be relaxed.
func (d *database) Release(ctx context.Context, s *conn.Session, l lease.Lease) (
	out lease.Released, err error,
) {
	release := d.release
	if s.Relaxed {
		release = d.relaxed
	}
	args := releaseArgs(&l, s.Process)
	err = s.Ask(ctx, release, args[:], nil, &out.Awaited)
	if errors.Is(err, sql.ErrNoRows) {
		return lease.Released{Gone: true}, nil
	}
	out.Looked = err == nil
	return out, err
}

// releaseArgs are key, owner, token and the process that releases.
func releaseArgs(l *lease.Lease, process lease.Owner) [4]conn.Arg {
	return [...]conn.Arg{
		{Kind: conn.ArgKey, Text: l.Key},
		{Kind: conn.ArgOwner, Owner: l.Owner},
		{Kind: conn.ArgInt, Int: int64(l.Token)},
		{Kind: conn.ArgOwner, Owner: process},
	}
}
