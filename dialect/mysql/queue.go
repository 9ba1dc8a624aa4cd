package mysql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Join renews heartbeats in one statement, and inserts in another the tickets that had none.
func (d *database) Join(ctx context.Context, s *conn.Session, tickets []lease.Ticket) error {
	list := sqlstore.TicketList(tickets)
	n, err := s.Change(ctx, d.Text("queue-beat"), list)
	if err != nil || n >= int64(len(tickets)) {
		return err
	}
	_, err = s.Exec(ctx, d.Text("queue-join"), list)
	return err
}

// head returns the waiter at the head of the queue, or the zero owner if the queue is empty.
func (d *database) head(ctx context.Context, s *conn.Session, key string, but lease.Owner) (
	head lease.Owner, err error,
) {
	var waiter []byte
	err = s.QueryRow(ctx, d.Text("queue-head"), []any{[]byte(key), conn.Bytes(but)}, &waiter)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	copy(head[:], waiter)
	return head, err
}

// Claim takes a free row with an empty queue in one round trip. Otherwise it reads the row, which
// is all a loser does, and then the queue.
func (d *database) Claim(ctx context.Context, s *conn.Session, r lease.AcquireRequest) (
	lease.Acquired, error,
) {
	key := []byte(r.Key)
	if out, err := d.update(ctx, s, "claim-update", r, key, key, key); !errors.Is(err,
		errNotTaken) {
		return out, err
	}
	a, err := d.read(ctx, s, r)
	absent := errors.Is(err, sql.ErrNoRows)
	if !absent && (err != nil || a.State != sqlstore.StateFree && a.State != sqlstore.StateLocked) {
		return a.Acquired(err)
	}
	head, err := d.head(ctx, s, r.Key, lease.Owner{})
	if err != nil {
		return lease.Acquired{}, err
	}
	if !head.IsZero() && head != r.Owner {
		return (&sqlstore.Answer{State: sqlstore.StateQueued}).Acquired(nil)
	}
	return d.claim(ctx, s, r, absent, head == r.Owner)
}

// claim takes or makes a row for the head of the queue, with its ticket if there is one.
func (d *database) claim(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest, absent, ticket bool,
) (out lease.Acquired, err error) {
	switch {
	case ticket:
		out, err = d.redeem(ctx, s, r, absent)
	case absent:
		out, err = d.insert(ctx, s, r)
	default:
		out, err = d.update(ctx, s, "acquire-expired", r, []byte(r.Key))
	}
	switch {
	case isDuplicate(err), absent && errors.Is(err, errNotTaken):
		err = sqlstore.ErrRowShape
	case errors.Is(err, errNotTaken):
		a, err := d.read(ctx, s, r)
		return a.Acquired(err)
	}
	return out, err
}

// redeem takes the row and uses the ticket up, in one statement. In a transaction, a client that
// vanishes would leave both locked until the server ends it. It first makes an absent row free,
// without an owner.
func (d *database) redeem(
	ctx context.Context, s *conn.Session, r lease.AcquireRequest, absent bool,
) (lease.Acquired, error) {
	key := []byte(r.Key)
	if absent {
		res, err := s.Exec(ctx, d.Text("claim-make"), key, lease.Bucket(r.Key), key)
		if err := changed(res, err); err != nil {
			return lease.Acquired{}, err
		}
	}
	owner := conn.Bytes(r.Owner)
	out, err := granted(s.Exec(ctx, d.Text("claim-ticket"), key, owner, owner, []byte(r.Note),
		conn.Micros(r.TTL)))
	if err == nil {
		d.drop(ctx, s, lease.Lease{Key: r.Key, Owner: r.Owner})
	}
	return out, err
}

// Pass finds the head of the queue and gives it the row. It frees the row if the queue is empty, or
// the head has left meanwhile, or the tokens have run out: the next head of the queue then claims
// it.
func (d *database) Pass(ctx context.Context, s *conn.Session, l lease.Lease) (lease.Passed, error) {
	head, err := d.head(ctx, s, l.Key, l.Owner)
	if err != nil {
		return lease.Passed{}, err
	}
	if !head.IsZero() {
		got, err := granted(s.Exec(ctx, d.Text("pass"), conn.Bytes(head), []byte(l.Key),
			conn.Bytes(l.Owner), l.Token))
		if err == nil {
			d.drop(ctx, s, lease.Lease{Key: l.Key, Owner: head})
			return sqlstore.PassedTo(head[:], got.Token)
		}
		if !errors.Is(err, errNotTaken) {
			return lease.Passed{}, err
		}
	}
	out, err := d.Release(ctx, s, l)
	return lease.Passed{Gone: out.Gone}, err
}

// drop deletes a used ticket. It ignores an error, because the use of the ticket is committed
// already, and a sweep finds what is left.
func (d *database) drop(ctx context.Context, s *conn.Session, l lease.Lease) {
	_ = d.DropDead(ctx, s, []lease.Lease{l}, 0)
}

// DeadTickets lists dead tickets.
func (d *database) DeadTickets(
	ctx context.Context, s *conn.Session, after lease.Lease, retention int64, limit int,
) ([]lease.Lease, error) {
	key := []byte(after.Key)
	return sqlstore.DeadTickets(ctx, s, d, key, key, conn.Bytes(after.Owner), retention, limit)
}
