package postgres

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Join writes tickets, or renews their heartbeat, in one statement.
func (d *database) Join(ctx context.Context, s *sqlstore.Session, tickets []lease.Ticket) error {
	_, err := s.Exec(ctx, d.Text("queue-join"), ticketArrays(tickets)...)
	return err
}

func ticketArrays(tickets []lease.Ticket) []any {
	var keys, owners, starts, notes, ttls array
	for _, t := range tickets {
		keys.bytea([]byte(t.Key))
		owners.bytea(t.Owner[:])
		starts.int(sqlstore.Micros(t.HeadStart()))
		notes.bytea([]byte(t.Note))
		ttls.int(sqlstore.Micros(t.TTL))
	}
	return []any{keys.close(), owners.close(), starts.close(), notes.close(), ttls.close()}
}

func waiters(waiters []lease.Lease) []any {
	var keys, owners array
	for _, l := range waiters {
		keys.bytea([]byte(l.Key))
		owners.bytea(l.Owner[:])
	}
	return []any{keys.close(), owners.close()}
}

// Claim tries a plain update of a free row and, if that changed nothing, the statement that handles
// every state.
func (d *database) Claim(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (
	lease.Acquired, error,
) {
	args := acquireArgs(r.Key, r.Owner, r.Note, r.TTL)
	return d.grant(ctx, s, asked{"claim-update", args[:4]}, asked{"claim-any", args[:]})
}

// DeadTickets lists dead tickets.
func (d *database) DeadTickets(
	ctx context.Context, s *sqlstore.Session, after lease.Lease, retention int64, limit int,
) ([]lease.Lease, error) {
	return sqlstore.DeadTickets(ctx, s, d, []byte(after.Key), sqlstore.Bytes(after.Owner),
		retention, limit)
}
