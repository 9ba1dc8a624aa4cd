package mysql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Acquire tries in the strategy's order: a row that is free takes one round trip. It reads a row
// that is not.
func (d *database) Acquire(
	ctx context.Context, s *conn.Session, strategy adapter.Strategy, r lease.AcquireRequest,
) (lease.Acquired, error) {
	if strategy == adapter.Insert && !lease.Lapses(r.Note) {
		if out, err := d.insert(ctx, s, r); err == nil || !isDuplicate(err) &&
			!errors.Is(err, errNotTaken) {
			return out, err
		}
	}
	if out, err := d.take(ctx, s, r); !errors.Is(err, errNotTaken) {
		return out, err
	}
	return d.look(ctx, s, r)
}

// look answers for a row that is held, creates one that is absent, and takes one that is free or
// expired.
func (d *database) look(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	lease.Acquired, error,
) {
	a, err := d.read(ctx, s, r)
	var out lease.Acquired
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if out, err = d.insert(ctx, s, r); isDuplicate(err) || errors.Is(err, errNotTaken) {
			err = sqlstore.ErrRowShape
		}
		return out, err
	case err == nil && a.State == sqlstore.StateFree:
		out, err = d.take(ctx, s, r)
	case err == nil && a.State == sqlstore.StateLocked:
		out, err = d.update(ctx, s, "acquire-expired", r, []byte(r.Key))
	default:
		return a.Acquired(err)
	}
	if !errors.Is(err, errNotTaken) {
		return out, err
	}
	a, err = d.read(ctx, s, r)
	return a.Acquired(err)
}

func (d *database) read(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	a sqlstore.Answer, err error,
) {
	err = s.QueryRow(ctx, d.Text("look"), []any{conn.Bytes(r.Owner), []byte(r.Key)},
		a.Dest()...)
	return a, err
}

// take gives a free row to the request's owner, and an expired one if the lease before was probably
// left to run out.
func (d *database) take(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	lease.Acquired, error,
) {
	if lease.Lapses(r.Note) {
		return d.update(ctx, s, "acquire-expired", r, []byte(r.Key))
	}
	key := any([]byte(r.Key)) // once: as an any, each would be an allocation
	return d.update(ctx, s, "acquire-update", r, key, key)
}

func (d *database) update(
	ctx context.Context, s *conn.Session, section string, r lease.AcquireRequest, keys ...any,
) (lease.Acquired, error) {
	args := append(make([]any, 0, 6), conn.Bytes(r.Owner), []byte(r.Note), conn.Micros(r.TTL))
	args = append(args, keys...)
	res, err := s.Exec(ctx, d.Text(section), args...)
	if isLockWait(err) {
		return lease.Acquired{}, errNotTaken
	}
	return granted(res, err)
}

func (d *database) insert(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	lease.Acquired, error,
) {
	return granted(s.Exec(ctx, d.Text("acquire-insert"),
		[]byte(r.Key), conn.Bytes(r.Owner), []byte(r.Note), conn.Micros(r.TTL),
		lease.Bucket(r.Key), []byte(r.Key)))
}

// changed returns errNotTaken for a statement that changed nothing.
func changed(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return oneline.Join(errNotTaken, err)
	}
	return nil
}

func granted(res sql.Result, err error) (lease.Acquired, error) {
	if err := changed(res, err); err != nil {
		return lease.Acquired{}, err
	}
	token, err := res.LastInsertId()
	return (&sqlstore.Answer{State: sqlstore.StateMine, Token: lease.Token(token)}).Acquired(err)
}
