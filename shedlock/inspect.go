package shedlock

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// Inspect lists rows in the order of their bytes, which is not the order of the table. The holder of
// a row that a Java process has locked is named by an owner that is made up, and differs with each
// grant. See [lease.Store].
func (s *Store) Inspect(ctx context.Context, f lease.Filter) (list []lease.Record, err error) {
	var found []row
	err = s.on(ctx, func(c *sql.Conn) (err error) { found, err = s.read(ctx, c, f.Keys); return err })
	if err != nil {
		return nil, fmt.Errorf("rowlock: shedlock: inspect: %w", err)
	}
	for _, r := range found {
		rec := r.record()
		if strings.HasPrefix(r.name, f.Prefix) && r.name > f.After && (rec.Held || !f.Held) {
			list = append(list, rec)
		}
	}
	slices.SortFunc(list, func(a, b lease.Record) int { return strings.Compare(a.Key, b.Key) })
	return list[:min(len(list), cmp.Or(max(f.Limit, 0), 1000))], nil
}

// read returns the rows of keys, or all: ShedLock's table has one for each job.
func (s *Store) read(ctx context.Context, on *sql.Conn, keys []string) (list []row, err error) {
	if len(keys) == 1 {
		r, ok, err := s.look(ctx, on, keys[0])
		if err != nil || !ok || r.name != keys[0] {
			return nil, err
		}
		return []row{r}, nil
	}
	rows, err := on.QueryContext(ctx, s.text.all)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		r, err := scan(rows)
		if err != nil {
			return nil, err
		}
		s.clocks.note(r)
		if len(keys) == 0 || slices.Contains(keys, r.name) {
			list = append(list, r)
		}
	}
	return list, rows.Err()
}
