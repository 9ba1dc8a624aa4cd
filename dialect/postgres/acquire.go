package postgres

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Acquire tries the strategy's plain statement, which returns a token or nothing, and after nothing
// the one that handles every state: at once if the lease before was probably left to run out, which
// no plain statement takes. The store checks the token, as that of every answer.
func (d *database) Acquire(
	ctx context.Context, s *conn.Session, strategy adapter.Strategy, r lease.AcquireRequest,
) (lease.Acquired, error) {
	args := acquireArgs(r.Key, r.Owner, r.Note, r.TTL)
	some := args[:4]
	if strategy == adapter.Insert {
		some = args[:]
	}
	var token lease.Token
	err := sql.ErrNoRows
	if !lease.Lapses(r.Note) {
		err = s.Ask(ctx, d.plain[strategy], some, nil, &token)
	}
	if err == nil {
		return lease.Acquired{Granted: true, Token: token}, nil
	}
	var a sqlstore.Answer
	if errors.Is(err, sql.ErrNoRows) {
		err = s.Ask(ctx, d.Text("acquire-any"), args[:], nil, a.Dest()...)
	}
	return a.Acquired(err)
}

// acquireArgs are key, owner, note, ttl and bucket. The plain statements do without the bucket.
func acquireArgs(key string, owner lease.Owner, note string, ttl time.Duration) [5]conn.Arg {
	return [...]conn.Arg{
		{Kind: conn.ArgKey, Text: key},
		{Kind: conn.ArgOwner, Owner: owner},
		{Kind: conn.ArgText, Text: note},
		{Kind: conn.ArgInt, Int: conn.Micros(ttl)},
		{Kind: conn.ArgInt, Int: int64(lease.Bucket(key))},
	}
}
