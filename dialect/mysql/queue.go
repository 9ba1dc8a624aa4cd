package mysql

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

func waiters(waiters []lease.Lease) []any { return []any{sqlstore.WaiterList(waiters)} }

// Join takes a sign of life in one statement, and inserts in another whoever gave none before.
func (d *database) Join(ctx context.Context, s *sqlstore.Session, tickets []lease.Ticket) error {
	list := sqlstore.TicketList(tickets)
	res, err := s.Exec(ctx, d.Text("queue-beat"), list)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n >= int64(len(tickets)) {
		return err
	}
	_, err = s.Exec(ctx, d.Text("queue-join"), list)
	return err
}

// head returns the first live ticket's waiter, the zero owner if there is none.
func (d *database) head(ctx context.Context, s *sqlstore.Session, key string, but lease.Owner) (head lease.Owner, err error) {
	var waiter []byte
	err = s.QueryRow(ctx, d.Text("queue-head"), []any{[]byte(key), sqlstore.Bytes(but)}, &waiter)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	copy(head[:], waiter)
	return head, err
}

// Claim takes a free row for which nobody waits in one round trip. Otherwise it looks at the row, which is all a loser does, and
// then at the queue.
func (d *database) Claim(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest) (lease.Acquired, error) {
	key := []byte(r.Key)
	if out, err := d.update(ctx, s, "claim-update", r, key, key, key); !errors.Is(err, errNotTaken) {
		return out, err
	}
	a, err := d.read(ctx, s, r)
	absent := errors.Is(err, sql.ErrNoRows)
	if !absent && (err != nil || a.State != sqlstore.StateFree && a.State != sqlstore.StateLocked) {
		return answered(a, err)
	}
	head, err := d.head(ctx, s, r.Key, lease.Owner{})
	if err != nil {
		return lease.Acquired{}, err
	}
	if !head.IsZero() && head != r.Owner {
		return (&sqlstore.Answer{State: sqlstore.StateQueued}).Acquired()
	}
	return d.claim(ctx, s, r, absent, head == r.Owner)
}

// claim takes or makes a row whose turn it is, with the ticket if there is one.
func (d *database) claim(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest, absent, ticket bool) (out lease.Acquired, err error) {
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
		return answered(d.read(ctx, s, r))
	}
	return out, err
}

// redeem takes the row and uses the ticket up, in one statement: in a transaction, a client that vanishes would have both locked
// until the server gives it up. An absent row is made first, and free: it belongs to nobody until then.
func (d *database) redeem(ctx context.Context, s *sqlstore.Session, r lease.AcquireRequest, absent bool) (lease.Acquired, error) {
	key := []byte(r.Key)
	if absent {
		res, err := s.Exec(ctx, d.Text("claim-make"), key, lease.Bucket(r.Key), key)
		if err := changed(res, err); err != nil {
			return lease.Acquired{}, err
		}
	}
	owner := sqlstore.Bytes(r.Owner)
	out, err := granted(s.Exec(ctx, d.Text("claim-ticket"), key, owner, owner, []byte(r.Note), sqlstore.Micros(r.TTL)))
	if err == nil {
		d.drop(ctx, s, lease.Lease{Key: r.Key, Owner: r.Owner})
	}
	return out, err
}

// Pass looks who is first and gives him the row. If nobody waits, or he has left meanwhile, or the tokens have run out, it frees
// the row: whoever is first then will claim it.
func (d *database) Pass(ctx context.Context, s *sqlstore.Session, l lease.Lease) (lease.Passed, error) {
	head, err := d.head(ctx, s, l.Key, l.Owner)
	if err != nil {
		return lease.Passed{}, err
	}
	if !head.IsZero() {
		got, err := granted(s.Exec(ctx, d.Text("pass"), sqlstore.Bytes(head), []byte(l.Key), sqlstore.Bytes(l.Owner), l.Token))
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

// drop deletes a ticket that was used up. An error is no news: what used it up has been committed, and a sweep finds what is left.
func (d *database) drop(ctx context.Context, s *sqlstore.Session, l lease.Lease) {
	_ = d.DropDead(ctx, s, []lease.Lease{l}, 0)
}

// DeadTickets lists tickets that are dead.
func (d *database) DeadTickets(ctx context.Context, s *sqlstore.Session, after lease.Lease, retention int64, limit int) ([]lease.Lease, error) {
	key := []byte(after.Key)
	return sqlstore.DeadTickets(ctx, s, d, key, key, sqlstore.Bytes(after.Owner), retention, limit)
}
