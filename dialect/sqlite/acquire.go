package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Acquire reads first under either strategy. A read in the same process costs microseconds, and a
// loser then never asks for the write lock, which the holder may have for as long as it is inside a
// fence.
func (d *database) Acquire(
	ctx context.Context, s *conn.Session, _ adapter.Strategy, r lease.AcquireRequest,
) (lease.Acquired, error) {
	var a sqlstore.Answer
	owner, key := any(conn.Bytes(r.Owner)), any([]byte(r.Key)) // once for both statements
	err := s.QueryRow(ctx, d.Text("look"), []any{owner, key}, a.Dest()...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return d.insert(ctx, s, r)
	case err != nil:
		return lease.Acquired{}, err
	case a.State != sqlstore.StateFree && a.State != sqlstore.StateLocked:
		return a.Acquired(nil)
	}
	out, err := d.write(ctx, s, "acquire-update", millis(r.TTL), owner, r.Note, key)
	if a.State == sqlstore.StateLocked && isBusy(err) {
		return a.Acquired(nil) // expired, and the previous holder's fence may have the write lock
	}
	return out, err
}

func (d *database) insert(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	lease.Acquired, error,
) {
	return d.write(ctx, s, "acquire-insert", []byte(r.Key), conn.Bytes(r.Owner), r.Note,
		millis(r.TTL), lease.Bucket(r.Key))
}

// write runs a statement that returns the granted token, or no row if another client was quicker.
func (d *database) write(ctx context.Context, s *conn.Session, section string, args ...any) (
	lease.Acquired, error,
) {
	a := sqlstore.Answer{State: sqlstore.StateMine}
	err := s.QueryRow(ctx, d.Text(section), args, a.Dest()[1:2]...) // the token
	return a.Acquired(err)
}
