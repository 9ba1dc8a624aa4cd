package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Inspect lists rows in the byte order of their keys. See [lease.Store].
func (s *Store) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	limit := cmp.Or(max(f.Limit, 0), 1000)
	records := []lease.Record{}
	for _, key := range s.namedLocked(f.Keys) {
		if len(records) == limit {
			break
		}
		if r := s.rows[key]; r != nil && selects(f, key, r.held(now)) {
			record := r.record(key, now)
			record.Intent = record.Shared && s.refusesLocked(now, key)
			records = append(records, record)
		}
	}
	return records, nil
}

// namedLocked returns the given keys, or those of all rows if none are given, each once and in
// order.
func (s *Store) namedLocked(keys []string) []string {
	if len(keys) == 0 {
		return slices.Sorted(maps.Keys(s.rows))
	}
	return slices.Compact(slices.Sorted(slices.Values(keys)))
}

func selects(f lease.Filter, key string, held bool) bool {
	return strings.HasPrefix(key, f.Prefix) && (f.After == "" || key > f.After) && (held || !f.Held)
}

func (r *row) record(key string, now time.Time) lease.Record {
	holder := r.holder(now)
	return lease.Record{
		Lease:     lease.Lease{Key: key, Owner: r.owner, Token: r.token, Shared: holder.Shared},
		Held:      r.held(now),
		Note:      holder.Note,
		Remaining: holder.Remaining,
		Age:       now.Sub(r.granted),
		Placement: r.placement,
		Members:   r.live(now),
	}
}
