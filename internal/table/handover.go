package table

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// HandOver gives leases to their next owners.
func (s *Store) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	out, ops := make([]lease.Acquired, len(items)), make([]*op, len(items))
	for i := range items {
		// From the zero owner, a batch would take it for an acquire.
		if out[i].Err = items[i].Check(); out[i].Err == nil && !items[i].From.Owner.IsZero() {
			ops[i] = s.begin(len(ops) > 1, conn.Release, task{run: runHandOver, handOver: &items[i]})
		}
	}
	for i, op := range ops {
		if op != nil {
			out[i] = s.handedOver(ctx, items[i], op)
		}
	}
	return out, only(out, func(a lease.Acquired) error { return a.Err })
}

func (s *Store) handedOver(ctx context.Context, h lease.HandOver, op *op) lease.Acquired {
	got, uncertain, err := s.conclude(ctx, "hand over", h.From.Key, op)
	if era.IsUnlearned(err) && !uncertain {
		return lease.Acquired{} // as without a token for the next owner: the holder releases
	}
	a := got.acquired
	if err == nil && !a.Granted {
		// An earlier request, or a try without an answer, may have changed the row
		var undone bool
		a, undone, err = s.whose(ctx, h)
		uncertain = uncertain && !undone
	}
	a.Unknown = uncertain
	if err != nil {
		return lease.Acquired{Err: err}
	}
	return a
}

// whose finds out whether a lease was handed over, and confirms what it reads. A row that names the
// next owner with a token which is not above the holder's was written by another hand. undone says
// that no try has handed the lease over, nor will.
func (s *Store) whose(ctx context.Context, h lease.HandOver) (a lease.Acquired, undone bool, err error) {
	r := &h.To
	rows, err := s.Inspect(ctx, lease.Filter{Keys: []string{r.Key}})
	if err == nil && len(rows) == 1 {
		err = rows[0].Err
	}
	if err == nil && len(rows) == 1 && rows[0].Held && rows[0].Owner == r.Owner &&
		rows[0].Token > h.From.Token {
		if err := conn.CheckToken(true, rows[0].Token); err != nil {
			return a, false, fmt.Errorf("hand over %q: %w", r.Key, err)
		}
		a.Token = rows[0].Token
		a.Granted, err = ask(ctx, s.engine, about{conn.Release, "hand over", r.Key},
			func(ctx context.Context, session *conn.Session) (bool, error) {
				return sqlstore.Confirm(ctx, session, s.d, rows[0].Lease, 0)
			})
	}
	if err != nil {
		err = fmt.Errorf("%w: hand over %q: %w", lease.ErrUnknown, r.Key, err)
	}
	return a, err == nil && len(rows) == 1 && lostBefore(h, rows[0].Lease), err
}

// lostBefore reports whether the row tells that the holder had lost its lease before it was handed
// over: the next grant was another owner's, or there was none and the row does not name the holder.
// Without this a hand-over that had no answer would hide the loss from the holder's Unlock.
func lostBefore(h lease.HandOver, row lease.Lease) bool {
	switch row.Token {
	case h.From.Token:
		return row.Owner != h.From.Owner
	case h.From.Token + 1:
		return !row.Owner.IsZero() && row.Owner != h.To.Owner
	}
	return false
}

var _ lease.SlotPasser = (*Store)(nil)

// PassSlots hands slots over, those of one limit that come together in one statement.
func (s *Store) PassSlots(
	ctx context.Context, name string, items []lease.SlotHandOver,
) ([]lease.Acquired, error) {
	out, ops := make([]lease.Acquired, len(items)), make([]*op, len(items))
	for i := range items {
		if out[i].Err = items[i].Check(); out[i].Err == nil {
			within := &sqlstore.Within{Name: name, Generation: items[i].Generation}
			ops[i] = s.begin(len(ops) > 1, conn.Release, task{run: runHandOver, handOver: &items[i].HandOver, within: within})
		}
	}
	for i, op := range ops {
		if op == nil {
			continue
		}
		if out[i] = s.handedOver(ctx, items[i].HandOver, op); out[i].Granted {
			out[i].Generation = items[i].Generation
		}
	}
	return out, only(out, func(a lease.Acquired) error { return a.Err })
}
