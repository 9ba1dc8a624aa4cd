package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Acquire tries the strategy's plain statement and, if that changed nothing, the one that handles
// every state.
func (d *database) Acquire(
	ctx context.Context, s *sqlstore.Session, strategy sqlstore.Strategy, r lease.AcquireRequest,
) (lease.Acquired, error) {
	args := acquireArgs(r.Key, r.Owner, r.Note, r.TTL)
	if strategy == sqlstore.Insert {
		return d.grant(ctx, s, asked{"acquire-insert", args[:]}, asked{"acquire-any", args[:]})
	}
	return d.grant(ctx, s, asked{"acquire-update", args[:4]}, asked{"acquire-any", args[:]})
}

// acquireArgs are key, owner, note, ttl and bucket. The plain statements do without the bucket.
func acquireArgs(key string, owner lease.Owner, note string, ttl time.Duration) [5]sqlstore.Arg {
	return [...]sqlstore.Arg{
		{Kind: sqlstore.ArgKey, Text: key},
		{Kind: sqlstore.ArgOwner, Owner: owner},
		{Kind: sqlstore.ArgText, Text: note},
		{Kind: sqlstore.ArgInt, Int: sqlstore.Micros(ttl)},
		{Kind: sqlstore.ArgInt, Int: int64(lease.Bucket(key))},
	}
}

// asked is a section with its parameters.
type asked struct {
	section string
	args    []sqlstore.Arg
}

// grant runs a plain section, which returns a token or nothing, and after nothing the full one,
// which returns an answer.
func (d *database) grant(
	ctx context.Context, s *sqlstore.Session, plain, full asked,
) (lease.Acquired, error) {
	a := sqlstore.Answer{State: sqlstore.StateMine}
	err := s.AskRow(ctx, d.Text(plain.section), plain.args, &a.Token)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.AskRow(ctx, d.Text(full.section), full.args, a.Dest()...)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return lease.Acquired{}, sqlstore.ErrRowShape
	case err != nil:
		return lease.Acquired{}, err
	}
	return a.Acquired()
}
