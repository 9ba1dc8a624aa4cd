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

const (
	// defaultLimit is what a Filter's Limit of 0 means.
	defaultLimit = 1000
	// refill is the least number of rows that one more statement for a short page reads.
	refill = 100
)

// Inspect lists rows in key order. It locks nothing. Rows of teams without a live member leave the
// listing of what is held only after they were read, so it reads on until its page is full: a
// caller takes a short page for the last.
func (s *Store) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	var out []lease.Record
	for limit := f.Limit; ; {
		page, err := s.listed(ctx, f)
		if err != nil || len(page) == 0 {
			return out, err
		}
		after, last := page[len(page)-1].Key, len(page) < f.Limit
		good, err := s.unveilRecords(ctx, f, page)
		if err != nil {
			return nil, err
		}
		if out = append(out, good...); last || len(out) >= limit {
			return out[:min(len(out), limit)], nil
		}
		f.After, f.Limit = after, max(refill, limit-len(out))
	}
}

// listed lists rows as they are, those of teams too.
func (s *Store) listed(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	held := 0
	if f.Held {
		held = 1
	}
	after, last := lease.Range(f.Prefix)
	section, args := "inspect", []any{[]byte(max(f.After, after)), []byte(last), held}
	if len(f.Keys) > 0 {
		keys := s.d.List(slices.Compact(slices.Sorted(slices.Values(f.Keys))))
		section, args = "inspect-keys", slices.Insert(args, 0, any(keys))
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
