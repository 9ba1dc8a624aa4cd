package queue

import (
	"context"
	"slices"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// lookTimeout bounds how long GiveUp reads what transactions of the holder's have left.
const lookTimeout = seam.Timeout / 4

// look finds out which leases a transaction of the holder's has released, by a read in place of
// their release. A forced release raises the token. So a free row with the lease's own token shows
// that the transaction was committed, and one that an owner has with the next token that no
// operator came between. Whatever else the row says, the lease is released as any other.
func (r *Releaser) look(ctx context.Context, items []*Release) {
	left := those(items, func(i *Release) bool { return i.Left })
	if len(left) == 0 || !r.forces() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	keys := make([]string, len(left))
	for n, i := range left {
		keys[n] = i.Lease.Key
	}
	rows, err := r.Store.Inspect(ctx, lease.Filter{Keys: keys, Limit: len(keys)})
	if err != nil {
		return // the release shows as much, and needs another look
	}
	for _, i := range left {
		i.Went = slices.ContainsFunc(rows, func(row lease.Record) bool {
			return row.Err == nil && row.Key == i.Lease.Key && (row.Owner.IsZero() && row.Token == i.Lease.Token ||
				!row.Owner.IsZero() && row.Token == i.Lease.Token+1)
		})
	}
}

func (r *Releaser) forces() bool {
	_, err := r.Store.Forces()
	return err == nil
}

// sendDue releases the leases of those items that have not gone, by a call of the store. To the
// others it answers gone.
func sendDue[A any](items []*Release, gone A, call func([]lease.Lease) []A) []A {
	out := make([]A, len(items))
	var due []*Release
	for _, i := range items {
		if !i.Went {
			due = append(due, i)
		}
	}
	var answers []A
	if len(due) > 0 {
		answers = call(leasesOf(due))
	}
	for n, i := range items {
		if out[n] = gone; !i.Went {
			out[n], answers = answers[0], answers[1:]
		}
	}
	return out
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

// told notes which of the leases that have gone were taken away by an operator.
func (r *Releaser) told(ctx context.Context, items []*Release) {
	for _, i := range items {
		i.Forced = i.Left && !i.Went && i.Gone && i.Err == nil && r.Forced(ctx, i.Lease)
	}
}
