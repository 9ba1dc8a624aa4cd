package table

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	// defaultLimit is what a Filter's Limit of 0 means.
	defaultLimit = 1000
	// refill is the least number of rows that one more statement for a short page reads.
	refill = 100
)

// Inspect lists rows in key order. It locks nothing. Rows of reader groups without a live member
// leave the listing of what is held only after they were read, so it reads on until its page is
// full: a caller takes a short page for the last.
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

// listed lists rows as they are, those of reader groups too.
func (s *Store) listed(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	after, last := lease.Range(f.Prefix)
	section, args := "inspect", []any{[]byte(max(f.After, after)), []byte(last), flag(f.Held)}
	if len(f.Keys) > 0 {
		keys := s.d.List(slices.Compact(slices.Sorted(slices.Values(f.Keys))))
		section, args = "inspect-keys", slices.Insert(args, 0, any(keys))
	}
	args = append(args, f.Limit)
	newest := adapter.ReadsNewest(ctx)
	return ask(ctx, s.engine, about{conn.Acquire, "inspect", f.Prefix},
		func(ctx context.Context, session *conn.Session) (found []lease.Record, err error) {
			if newest {
				if err := s.eras.Current(session); err != nil {
					return nil, err
				}
			}
			err = session.Query(ctx, s.d.Text(section), args, func(row conn.Columns) error {
				r, err := scanRecord(row)
				if err == nil || conn.IsBad(err) && r.Key != "" {
					r.Err = err
					found = append(found, r)
					return nil
				}
				return conn.UnlessBad(err)
			})
			return found, err
		})
}

// leastPlacement is that of a record which a cluster on rows has sealed: see groupreplication.
const leastPlacement = lease.PlacementTransaction - 1

// scanRecord reads a line of the inspect section. A row with an error that names the row counts as
// held, because no caller can tell that it is free.
func scanRecord(row conn.Columns) (r lease.Record, err error) {
	var key, owner, note []byte
	var remaining, age int64
	err = row.Scan(&key, &owner, &r.Token, &note, &r.Held, &remaining, &age, &r.Placement)
	copy(r.Owner[:], owner)
	r.Key, r.Note = string(key), string(note)
	r.Remaining, r.Age = conn.Duration(remaining), conn.Duration(age)
	if err != nil {
		r.Held = true
		return r, fmt.Errorf("%q: %w", key, err)
	}
	if owner != nil && len(owner) != len(r.Owner) || r.Token < 0 || r.Placement < leastPlacement ||
		len(key) == 0 || len(key) > lease.MaxKey {
		r.Held, r.Owner = true, lease.Owner{}
		return r, fmt.Errorf("%w: %q: owner %x, token %d, placement %d", lease.ErrCorrupt, key, owner, r.Token,
			r.Placement)
	}
	// A database that reads the clock twice may be a moment late. An expiry that is no number is
	// later than any, and nothing remains of it.
	if r.Held && r.Remaining < -time.Minute {
		return r, fmt.Errorf("%w: %q is held, and has expired %s ago: its expires_at is no time",
			lease.ErrCorrupt, key, -r.Remaining)
	}
	return r, nil
}
