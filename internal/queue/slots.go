package queue

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// passSlots hands slots over to their heirs, in one call for each limit. It returns the items whose
// leases are still to be released. What has an unknown outcome is the orphan cleaner's.
func (q *Attempts) passSlots(
	ctx context.Context, items []*Release,
) (left []*Release) {
	limits := make(map[string][]*Release)
	for _, i := range items {
		// A call that names the slot's key waits in its queue: a hand-over would pass it by.
		queued := q.keys.len(i.Lease.Key) > 0
		if i.Next != nil && i.Next.Generation > 0 && !i.Left && !queued {
			limits[i.Next.Limit] = append(limits[i.Next.Limit], i)
		} else {
			left = append(left, i)
		}
	}
	for name, some := range limits {
		left = append(left, q.passWithin(ctx, name, some)...)
	}
	return left
}

func (q *Attempts) passWithin(
	ctx context.Context, name string, items []*Release,
) (left []*Release) {
	reqs := make([]lease.SlotHandOver, len(items))
	for n, i := range items {
		h := lease.HandOver{From: i.Lease, To: i.Next.To}
		reqs[n] = lease.SlotHandOver{HandOver: h, Generation: i.Next.Generation}
		i.Next.Sent = time.Now()
	}
	var orphans []lease.Lease
	for n, a := range q.store.PassSlots(ctx, name, reqs) {
		i := items[n]
		i.Next.Answer, i.Err = a, a.Err
		if a.Err != nil || a.Doubtful && !a.Granted {
			orphans = append(orphans, lease.Lease{Key: i.Lease.Key, Owner: i.Next.To.Owner})
		}
		i.Passed = a.Doubtful
		if a.Err == nil && !a.Granted { // lost, or the limit has changed: the release says which
			left = append(left, i)
		}
	}
	q.cfg.Asker.Orphans.AddLeases(orphans...)
	return left
}
