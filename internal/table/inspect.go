package table

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// row is a line of the inspect section.
type row struct {
	Key       []byte `db:"key"`
	Owner     []byte `db:"owner"`
	Token     int64  `db:"token"`
	Note      []byte `db:"note"`
	Held      bool   `db:"held"`
	Remaining int64  `db:"remaining"`
	Age       int64  `db:"age"`
	Home      int    `db:"home"`
}

// Inspect lists rows in key order. It locks nothing.
func (s *Store) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if f.Limit <= 0 {
		f.Limit = 1000
	}
	held := 0
	if f.Held {
		held = 1
	}
	section, args := "inspect", []any{s.d.List([]string{f.After, f.Prefix}), len(f.Prefix), held}
	if len(f.Keys) > 0 {
		section, args = "inspect-keys",
			append(args, s.d.List(slices.Compact(slices.Sorted(slices.Values(f.Keys)))))
	}
	args = append(args, f.Limit)
	found, err := ask(ctx, s.engine, lane.Acquire, "inspect", f.Prefix,
		func(ctx context.Context, session *sqlstore.Session) (found []row, err error) {
			rows, err := session.Rows(ctx, s.d.Text(section), args)
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			err = sqlx.StructScan(rows, &found)
			return found, err
		})
	if err != nil {
		return nil, err
	}
	return records(found)
}

func records(rows []row) ([]lease.Record, error) {
	out := make([]lease.Record, 0, len(rows))
	for _, r := range rows {
		rec, err := r.record()
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

func (r row) record() (lease.Record, error) {
	rec := lease.Record{
		Lease: lease.Lease{Key: string(r.Key), Token: r.Token},
		Held:  r.Held, Note: string(r.Note), Home: r.Home,
		Remaining: sqlstore.Duration(r.Remaining), Age: sqlstore.Duration(r.Age),
	}
	if r.Owner != nil && copy(rec.Owner[:], r.Owner) != len(rec.Owner) || r.Token < 0 {
		return rec,
			fmt.Errorf("%w: %q: owner %x, token %d", lease.ErrCorrupt, r.Key, r.Owner, r.Token)
	}
	return rec, nil
}
