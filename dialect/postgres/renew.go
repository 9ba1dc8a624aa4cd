package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Renew renews a batch in one statement.
func (d *database) Renew(ctx context.Context, s *sqlstore.Session, reqs []lease.RenewRequest) (
	[]lease.Renewed, error,
) {
	out := make([]lease.Renewed, 0, len(reqs))
	err := s.Query(ctx, d.Text("renew"), renewArrays(reqs), func(row sqlstore.Columns) error {
		var outcome, clock, remaining int64
		if err := row.Scan(&outcome, &clock, &remaining); err != nil {
			return err
		}
		out = append(out, lease.Renewed{
			Outcome: lease.RenewOutcome(outcome), Clock: sqlstore.Duration(clock),
			Remaining: sqlstore.Duration(remaining),
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
func (d *database) Release(ctx context.Context, s *sqlstore.Session, l lease.Lease) (
	out lease.Released, err error,
) {
	section := "release"
	if s.Relaxed {
		section = "release-relaxed"
	}
	args := releaseArgs(&l, s.Process)
	err = s.AskRow(ctx, d.Text(section), args[:], &out.Awaited)
	if errors.Is(err, sql.ErrNoRows) {
		return lease.Released{Gone: true}, nil
	}
	out.Looked = err == nil
	return out, err
}

// releaseArgs are key, owner, token and the process that releases.
func releaseArgs(l *lease.Lease, process lease.Owner) [4]sqlstore.Arg {
	return [...]sqlstore.Arg{
		{Kind: sqlstore.ArgKey, Text: l.Key},
		{Kind: sqlstore.ArgOwner, Owner: l.Owner},
		{Kind: sqlstore.ArgInt, Int: l.Token},
		{Kind: sqlstore.ArgOwner, Owner: process},
	}
}
