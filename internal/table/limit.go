package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

var _ lease.Limiter = (*Store)(nil)

// MakeLimit makes the limit's row unless there is one.
func (s *Store) MakeLimit(ctx context.Context, l lease.Limit) (lease.Limit, error) {
	if err := cmp.Or(l.Check(), s.sets.Need(sqlstore.Shared)); err != nil {
		return l, err
	}
	found, err := ask(ctx, s.engine, about{conn.Acquire, "make limit", l.Name},
		func(ctx context.Context, session *conn.Session) (sqlstore.Limit, error) {
			found, err := sqlstore.LookAtLimit(ctx, session, s.d, l.Name)
			if err != nil || found.Exists {
				return found, err
			}
			found, err = s.unmade(ctx, session, l)
			if err == nil {
				err = sqlstore.MakeLimit(ctx, session, s.d, l.Name, found)
			}
			if err != nil {
				return found, err
			}
			return sqlstore.LookAtLimit(ctx, session, s.d, l.Name)
		})
	if err != nil {
		return l, err
	}
	return lease.Limit{Name: l.Name, Slots: found.Slots}, nil
}

// Resize begins a generation of the limit.
func (s *Store) Resize(ctx context.Context, l lease.Limit) error {
	if err := cmp.Or(l.Check(), s.sets.Need(sqlstore.Shared)); err != nil {
		return err
	}
	found, err := ask(ctx, s.engine, about{conn.Acquire, "resize limit", l.Name},
		func(ctx context.Context, session *conn.Session) (bool, error) {
			return sqlstore.ResizeLimit(ctx, session, s.d, l.Name, l.Slots)
		})
	if err == nil && !found {
		return &lease.LimitError{Name: l.Name, Slots: l.Slots}
	}
	return err
}

// within is what came of an AcquireWithin on a pinned connection.
type within struct {
	limit   sqlstore.Limit
	applied []sqlstore.Applied
}

// AcquireWithin needs a statement more than AcquireAny, which reads the limit, and one that reads
// the slots while the limit is less than it was.
func (s *Store) AcquireWithin(
	ctx context.Context, l lease.Limit, reqs []lease.AcquireRequest, n int,
) ([]lease.Acquired, error) {
	if err := cmp.Or(l.CheckSlots(reqs, n), adapter.CheckAny(reqs, n), s.sets.Need(sqlstore.Shared)); err != nil {
		return nil, err
	}
	changes := changesOf(reqs)
	got, uncertain,
		err := askTwice(ctx, s.engine, about{conn.Acquire, "acquire slots", l.Name},
		func(ctx context.Context, session *conn.Session) (within, error) {
			return s.applyWithin(ctx, session, l, changes, n)
		})
	switch {
	case err != nil && (!errors.Is(err, sqlstore.ErrRowLocked) || errors.Is(err, lease.ErrUnknown)):
		return nil, err
	case err != nil:
		return s.whyNot(ctx, reqs, uncertain)
	case got.applied == nil && got.limit.Slots != l.Slots:
		err := &lease.LimitError{Name: l.Name, Slots: l.Slots, Found: got.limit.Slots}
		if uncertain {
			return nil, oneline.Join(lease.ErrUnknown, err)
		}
		return nil, err
	case got.applied == nil:
		return nil, fmt.Errorf("%w: to acquire slots from %s", lease.ErrUnsupported, s.d.Name())
	}
	return s.someAnswers(ctx, "acquire slots", reqs, got.applied, n, uncertain)
}

// applyWithin runs on a pinned connection: it reads the limit, counts in its generation, and grants
// in no other.
func (s *Store) applyWithin(
	ctx context.Context, session *conn.Session, l lease.Limit, changes []sqlstore.Change, n int,
) (w within, err error) {
	w.limit, err = sqlstore.LookAtLimit(ctx, session, s.d, l.Name)
	if err != nil {
		return w, err
	}
	bound := l.Slots
	if w.limit.Peak > l.Slots || w.limit.Slots != l.Slots {
		rows, err := s.slots(ctx, session, l, max(w.limit.Peak, l.Slots))
		if err != nil {
			return w, err
		}
		if again := owned(l, rows, changes); again != nil { // by an earlier try: grant none beside it
			w.applied, err = s.confirmAll(ctx, session, changes, again)
			return w, err
		}
		if bound, err = s.bound(ctx, session, l, rows); err != nil {
			return w, err
		}
	}
	if w.limit.Slots != l.Slots {
		return w, nil
	}
	at, some := below(l, bound, changes)
	w.applied = make([]sqlstore.Applied, len(changes))
	for i := range w.applied {
		w.applied[i].Outcome = sqlstore.Held
	}
	if len(some) < n {
		return w, nil
	}
	applied, err := s.applySome(ctx, session, some, n,
		&sqlstore.Within{Name: l.Name, Generation: w.limit.Generation})
	if applied == nil {
		return within{limit: w.limit}, err
	}
	for i, a := range applied {
		w.applied[at[i]] = a
	}
	return w, err
}

// below returns the changes of slots below bound, and their places.
func below(l lease.Limit, bound int, changes []sqlstore.Change) (at []int, some []sqlstore.Change) {
	for i := range changes {
		if slot, _ := l.Index(changes[i].From.Key); slot < bound {
			at, some = append(at, i), append(some, changes[i])
		}
	}
	return at, some
}

// slots reads all slots that there ever were.
func (s *Store) slots(
	ctx context.Context, session *conn.Session, l lease.Limit, peak int,
) ([]sqlstore.Row, error) {
	keys := make([]string, peak)
	for i := range keys {
		keys[i] = l.Slot(i)
	}
	return sqlstore.ReadRows(ctx, session, s.d, keys)
}

// unmade is a limit that has no row yet. Slots may be held above it: its row can be removed, as by
// a tool that makes the tables of limits anew, and they are rows of their own. None is granted
// then.
func (s *Store) unmade(
	ctx context.Context, session *conn.Session, l lease.Limit,
) (sqlstore.Limit, error) {
	rows, err := s.slots(ctx, session, l, lease.MaxSlots)
	made := sqlstore.Limit{Slots: l.Slots, Peak: l.Slots}
	for i, row := range rows {
		if row.Bad || !row.Owner.IsZero() {
			made.Peak = max(made.Peak, i+1)
		}
	}
	return made, err
}

// bound counts which slots are held. A lease that has expired may still be fenced, so that it
// counts until it was released.
func (s *Store) bound(
	ctx context.Context, session *conn.Session, l lease.Limit, rows []sqlstore.Row,
) (int, error) {
	held := make([]bool, len(rows))
	var expired []sqlstore.Change
	for i, row := range rows {
		held[i] = row.Bad || !row.Owner.IsZero()
		if held[i] && !row.Bad && row.Here && row.Holder.Remaining <= 0 {
			from := lease.Lease{Key: l.Slot(i), Owner: row.Owner, Token: row.Token}
			expired = append(expired, sqlstore.Change{From: from})
		}
	}
	err := s.endExpired(ctx, session, l, expired, held)
	return l.Bound(held), err
}

// endExpired releases expired leases that no transaction fences.
func (s *Store) endExpired(
	ctx context.Context, session *conn.Session, l lease.Limit, expired []sqlstore.Change,
	held []bool,
) error {
	if len(expired) == 0 {
		return nil
	}
	applied, err := s.d.Apply(ctx, session, expired, false)
	for i, a := range applied {
		if slot, _ := l.Index(expired[i].From.Key); err == nil && a.Outcome == sqlstore.Done {
			held[slot] = false
		}
	}
	return err
}

// owned answers changes of which an earlier try was granted, and returns nil otherwise.
func owned(l lease.Limit, rows []sqlstore.Row, changes []sqlstore.Change) []sqlstore.Applied {
	applied := make([]sqlstore.Applied, len(changes))
	for i := range changes {
		if slot, _ := l.Index(changes[i].From.Key); slot < len(rows) {
			applied[i] = rows[slot].Acquired(changes[i].To)
		}
	}
	if anyIs(applied, sqlstore.Found) {
		return applied
	}
	return nil
}
