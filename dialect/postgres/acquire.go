package postgres

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Acquire tries the strategy's plain statement and, if that changed nothing, the one that handles
// every state.
func (d *database) Acquire(
	ctx context.Context, s *sqlstore.Session, strategy sqlstore.Strategy, r lease.AcquireRequest,
) (lease.Acquired, error) {
	args := []any{[]byte(r.Key), sqlstore.Bytes(r.Owner), r.Note, sqlstore.Micros(r.TTL)}
	if strategy == sqlstore.Insert {
		return d.grant(ctx, s, "acquire-insert", append(args, lease.Bucket(r.Key)), "acquire-any",
			r)
	}
	return d.grant(ctx, s, "acquire-update", args, "acquire-any", r)
}

// grant runs a plain section, which returns a token or nothing, and after nothing the full one,
// which returns an answer.
func (d *database) grant(
	ctx context.Context, s *sqlstore.Session, plain string, args []any, full string,
	r lease.AcquireRequest,
) (lease.Acquired, error) {
	a := sqlstore.Answer{State: sqlstore.StateMine}
	err := s.QueryRow(ctx, d.Text(plain), args, &a.Token)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.QueryRow(ctx, d.Text(full), append(args[:4:4], lease.Bucket(r.Key)), a.Dest()...)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return lease.Acquired{}, sqlstore.ErrRowShape
	case err != nil:
		return lease.Acquired{}, err
	}
	return a.Acquired()
}
