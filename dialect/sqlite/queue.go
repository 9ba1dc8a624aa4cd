package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Join writes tickets, or renews their heartbeat, in one statement.
func (d *database) Join(ctx context.Context, s *conn.Session, tickets []lease.Ticket) error {
	_, err := s.Exec(ctx, d.Text("queue-join"), sqlstore.TicketList(tickets))
	return err
}

// Claim reads first, as Acquire does. It asks for the write lock only if the key is available and
// the requester is the head of the queue.
func (d *database) Claim(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	lease.Acquired, error,
) {
	var a sqlstore.Answer
	err := s.QueryRow(ctx, d.Text("look"), []any{conn.Bytes(r.Owner), []byte(r.Key)},
		a.Dest()...)
	absent := errors.Is(err, sql.ErrNoRows)
	switch {
	case err != nil && !absent:
		return lease.Acquired{}, err
	case !absent && a.State != sqlstore.StateFree && a.State != sqlstore.StateLocked:
		return a.Acquired(nil)
	}
	turn, ticket, err := d.turn(ctx, s, r)
	switch {
	case err != nil:
		return lease.Acquired{}, err
	case !turn:
		return (&sqlstore.Answer{State: sqlstore.StateQueued}).Acquired(nil)
	}
	out, err := d.claim(ctx, s, r, absent, ticket)
	if a.State == sqlstore.StateLocked && isBusy(err) {
		return a.Acquired(nil) // expired, and the previous holder's fence may have the write lock
	}
	return out, err
}

// turn reports whether the requester is the head of the queue, and whether a ticket of its own says
// so.
func (d *database) turn(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	turn, ticket bool, err error,
) {
	var head []byte
	err = s.QueryRow(ctx, d.Text("queue-head"), []any{[]byte(r.Key)}, &head)
	if errors.Is(err, sql.ErrNoRows) {
		return true, false, nil
	}
	mine := string(head) == string(r.Owner[:])
	return mine, mine, err
}

// claim takes or makes a row for the head of the queue, with its ticket if there is one.
func (d *database) claim(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest, absent, ticket bool,
) (out lease.Acquired, err error) {
	grant := func() (err error) {
		if absent {
			out, err = d.insert(ctx, s, r)
		} else {
			out, err = d.write(ctx, s, "acquire-update", millis(r.TTL), conn.Bytes(r.Owner),
				r.Note, []byte(r.Key))
		}
		return err
	}
	if !ticket {
		err = grant()
		return out, err
	}
	err = s.InTx(ctx, func() error {
		if err := grant(); err != nil {
			return err
		}
		return d.Leave(ctx, s, []lease.Lease{{Key: r.Key, Owner: r.Owner}})
	})
	return out, err
}

// Pass gives the row to the first ticket, or frees it.
func (d *database) Pass(ctx context.Context, s *conn.Session, l lease.Lease) (
	out lease.Passed, err error,
) {
	err = s.InTx(ctx, func() error {
		out, err = d.Base.Pass(ctx, s, l)
		if err != nil || out.To.IsZero() {
			return err
		}
		return d.Leave(ctx, s, []lease.Lease{{Key: l.Key, Owner: out.To}})
	})
	return out, err
}

// DeadTickets lists dead tickets.
func (d *database) DeadTickets(
	ctx context.Context, s *conn.Session, after lease.Lease, retention int64, limit int,
) ([]lease.Lease, error) {
	return sqlstore.DeadTickets(ctx, s, d, []byte(after.Key), conn.Bytes(after.Owner),
		retention, limit)
}

// version reads the counter by which SQLite itself checks whether its cache is still valid.
func (d *database) version(ctx context.Context, s *conn.Session) (v int64, err error) {
	err = s.QueryRow(ctx, d.Text("version"), nil, &v)
	return v, err
}
