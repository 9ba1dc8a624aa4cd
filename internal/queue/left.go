package queue

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// lookTimeout bounds how long GiveUp reads what transactions of the holder's have left.
const lookTimeout = adapter.Timeout / 4

// look finds out which leases a transaction of the holder's has released, by a read in place of
// their release. A forced release raises the token. So a free row with the lease's own token shows
// that the transaction was committed, and one that an owner has with the next token that no
// operator came between. Whatever else the row says, the lease is released as any other.
func (r *Releaser) look(ctx context.Context, items []Release) {
	var keys []string
	for n := range items {
		if i := &items[n]; i.Left && !i.state.done && !i.state.went {
			keys = append(keys, i.Lease.Key)
		}
	}
	if _, err := r.Store.Forces(); err != nil || len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	rows, err := r.Store.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return // the release shows as much, and needs another look
	}
	for n := range items {
		i := &items[n]
		i.state.went = i.state.went || i.Left && slices.ContainsFunc(rows, func(row lease.Record) bool {
			free := row.Owner.IsZero()
			return row.Err == nil && row.Key == i.Lease.Key &&
				(free && row.Token == i.Lease.Token || !free && row.Token == i.Lease.Token+1)
		})
	}
}

// Forced reports whether an operator has taken the lease away: then no transaction has released it,
// because that would have been refused. It reports false if that cannot be found out.
func (r *Releaser) Forced(ctx context.Context, l lease.Lease) bool {
	forces, err := r.Store.Forces()
	if err != nil {
		return false
	}
	records, err := forces.ForceReleases(ctx, lease.ForcedFilter{Key: l.Key, Limit: 10})
	return err == nil && slices.ContainsFunc(records, func(f lease.Forced) bool { return f.Lease.Token == l.Token })
}
