package postgres

import (
	"context"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Join writes tickets, or shows that they are alive, in one statement.
func (d *Dialect) Join(ctx context.Context, s *sqlstore.Session, tickets []lease.Ticket) error {
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

func waiterArrays(waiters []lease.Lease) []any {
	var keys, owners array
	for _, l := range waiters {
		keys.bytea([]byte(l.Key))
		owners.bytea(l.Owner[:])
	}
	return []any{keys.close(), owners.close()}
}

// Leave removes tickets.
func (d *Dialect) Leave(ctx context.Context, s *sqlstore.Session, waiters []lease.Lease) error {
	_, err := s.Exec(ctx, d.Text("queue-leave"), waiterArrays(waiters)...)
	return err
}

// Places says where tickets stand.
func (d *Dialect) Places(ctx context.Context, s *sqlstore.Session, waiters []lease.Lease) ([]lease.Place, error) {
	return sqlstore.Places(ctx, s, d, len(waiters), waiterArrays(waiters)...)
}

// Claim tries a plain update of a free row and, where that changed nothing, the statement that copes with everything.
func (d *Dialect) Claim(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (lease.Acquired, error) {
	args := []any{[]byte(r.Key), sqlstore.Bytes(r.Owner), r.Note, sqlstore.Micros(r.TTL)}
	return d.grant(ctx, s, "claim-update", args, "claim-any", r)
}

// Pass gives the row to the first ticket, or frees it, in one statement.
func (d *Dialect) Pass(ctx context.Context, s *sqlstore.Session, l lease.Lease) (lease.Passed, error) {
	return sqlstore.Pass(ctx, s, d, l)
}

// DeadTickets lists tickets that are dead.
func (d *Dialect) DeadTickets(ctx context.Context, s *sqlstore.Session, after lease.Lease, retention int64, limit int) ([]lease.Lease, error) {
	return sqlstore.DeadTickets(ctx, s, d, []byte(after.Key), sqlstore.Bytes(after.Owner), retention, limit)
}

// DropDead removes dead tickets.
func (d *Dialect) DropDead(ctx context.Context, s *sqlstore.Session, tickets []lease.Lease, retention int64) error {
	_, err := s.Exec(ctx, d.Text("queue-reap"), append(waiterArrays(tickets), retention)...)
	return err
}
