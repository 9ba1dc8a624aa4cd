package forupdate

import (
	"cmp"
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Inspect lists the rows of this kind of store. A row whose holder's transaction is gone is not
// held, so that waiters need not wait for its expiry.
func (s *Store) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	f.Limit = cmp.Or(max(f.Limit, 0), 1000)
	var out []lease.Record
	for limit := f.Limit; ; {
		page, err := s.rows.Inspect(ctx, f)
		if err != nil {
			return nil, err
		}
		good, err := s.sift(ctx, page, f.Held)
		if err != nil {
			return nil, err
		}
		if out = append(out, good...); len(page) < f.Limit || len(out) >= limit {
			return out, nil
		}
		f.After, f.Limit = page[len(page)-1].Key, limit-len(out)
	}
}

// sift leaves out rows of another kind and, with heldOnly, those that are not held.
func (s *Store) sift(ctx context.Context, rows []lease.Record, heldOnly bool) ([]lease.Record, error) {
	good := rows[:0]
	var held []string
	for _, r := range rows {
		if r.Placement != lease.PlacementTransaction {
			continue
		}
		if good = append(good, r); r.Held {
			held = append(held, r.Key)
		}
	}
	free, err := s.keys.free(ctx, held)
	if err != nil || len(free) == 0 {
		return good, err
	}
	alive := good[:0]
	for _, r := range good {
		if free[r.Key] && r.Held {
			r.Held, r.Remaining = false, 0
		}
		if r.Held || !heldOnly {
			alive = append(alive, r)
		}
	}
	return alive, nil
}

// Edges follows the waits of chains. It leaves out a key whose holder's transaction is gone,
// because any waiter gets that key, whatever its row says.
func (s *Store) Edges(
	ctx context.Context, by lease.Party, from []lease.Owner, limit int,
) ([]lease.Edge, error) {
	edges, err := s.rows.Edges(ctx, by, from, limit)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(edges))
	for i, e := range edges {
		keys[i] = e.Key
	}
	slices.Sort(keys)
	free, err := s.keys.free(ctx, slices.Compact(keys))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(edges, func(e lease.Edge) bool { return free[e.Key] }), nil
}

// Sweep removes dead rows as every store does. Then it removes the rows of rowlock_hold whose keys
// have no other row and that are older than the retention; it does not count those. Locked rows
// stay.
func (s *Store) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if removed, err = s.rows.Sweep(ctx, o); err == nil {
		_, err = s.keys.sweep(ctx, o)
	}
	return removed, err
}

// Sweep removes the rows of keys that no transaction has locked and that are older than the
// retention, and returns how many. A Locker makes a row for each key and leaves it there. If keys
// are new all the time, call Sweep regularly (once an hour, with a retention of a day), unless a
// Client on a [Store] with these tables does. On SQLite there are no rows.
func (l *Locker) Sweep(ctx context.Context, o lease.SweepOptions) (removed int64, err error) {
	if err := cmp.Or(isnil.Context("sweep", ctx), o.Check()); err != nil {
		return 0, err
	}
	if l.wholeFile() {
		return 0, ctx.Err()
	}
	return l.keys.sweep(ctx, o)
}
