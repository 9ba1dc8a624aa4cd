package postgres

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
	_, err := s.Exec(ctx, d.Text("queue-join"), ticketArrays(tickets)...)
	return err
}

func ticketArrays(tickets []lease.Ticket) []any {
	var keys, owners, starts, notes, ttls array
	for _, t := range tickets {
		keys.bytea(t.Key)
		owners.bytea(string(t.Owner[:]))
		starts.int(conn.Micros(t.HeadStart()))
		notes.bytea(t.Note)
		ttls.int(conn.Micros(t.TTL))
	}
	return []any{&keys, &owners, &starts, &notes, &ttls}
}

func waiters(waiters []lease.Lease) []any {
	var keys, owners array
	for _, l := range waiters {
		keys.bytea(l.Key)
		owners.bytea(string(l.Owner[:]))
	}
	return []any{&keys, &owners}
}

// Claim tries a plain update of a free row and, if that changed nothing, the statement that handles
// every state.
func (d *database) Claim(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	lease.Acquired, error,
) {
	args := acquireArgs(r.Key, r.Owner, r.Note, r.TTL)
	a := sqlstore.Answer{State: sqlstore.StateMine}
	err := s.Ask(ctx, d.Text("claim-update"), args[:4], nil, &a.Token)
	if errors.Is(err, sql.ErrNoRows) {
		err = s.Ask(ctx, d.Text("claim-any"), args[:], nil, a.Dest()...)
	}
	return a.Acquired(err)
}

// DeadTickets lists dead tickets.
func (d *database) DeadTickets(
	ctx context.Context, s *conn.Session, after lease.Lease, retention int64, limit int,
) ([]lease.Lease, error) {
	return sqlstore.DeadTickets(ctx, s, d, []byte(after.Key), conn.Bytes(after.Owner),
		retention, limit)
}
