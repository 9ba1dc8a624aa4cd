package forupdate

import (
	"cmp"
	"context"

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
