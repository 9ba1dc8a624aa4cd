package wlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Inspect shows keys that are named: the leases of this process as it knows them, and of others the
// owner and the token, if a server says so, which may be of the past. A cluster lists no keys, so
// that a filter without keys is lease.ErrUnsupported.
func (s *Store) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("rowlock: wlock: %w", err)
	}
	if len(f.Keys) == 0 {
		return nil, fmt.Errorf("%w: WLock lists no keys: name them with lease.Filter.Keys", lease.ErrUnsupported)
	}
	keys := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(f.Keys))), func(key string) bool {
		return !strings.HasPrefix(key, f.Prefix) || key <= f.After
	})
	records, err := each(s, ctx, keys, s.inspect, func(err error) lease.Record { return lease.Record{Err: err} })
	for _, r := range records {
		if r.Err != nil { // it is no row that is corrupt
			err = r.Err
		}
	}
	if err != nil {
		return nil, err
	}
	records = slices.DeleteFunc(records, func(r lease.Record) bool { return !r.Held })
	return records[:min(len(records), cmp.Or(max(f.Limit, 0), 1000))], nil
}

func (s *Store) inspect(ctx context.Context, key string) (lease.Record, error) {
	if v, owner, held := s.seen(key); held {
		return lease.Record{
			Lease: lease.Lease{Key: key, Owner: owner, Token: v.first},
			Held:  true, Note: v.note, Remaining: time.Until(v.until), Age: time.Since(v.granted),
		}, nil
	}
	found, held, err := s.c.See(ctx, Lock{Key: wireKey(key)})
	if err != nil || !held {
		return lease.Record{}, err
	}
	l := lease.Lease{Key: key, Owner: found.Owner, Token: found.Token}
	return lease.Record{Lease: l, Held: true, Remaining: guess, Age: s.follow(key, l.Token)}, nil
}
