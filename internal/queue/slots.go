package queue

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// passSlots hands slots over to their next owners, in one call for each limit. Other items are
// still to be released. What has an unknown outcome is the orphan cleaner's.
func (q *Attempts) passSlots(ctx context.Context, items []Release) {
	limits := make(map[string][]*Release)
	for n := range items {
		i := &items[n]
		if i.state.done || i.Left || i.Next == nil || i.Next.Generation == 0 {
			continue
		}
		// A call that names the slot's key waits in its queue: a hand-over would pass it by.
		if q.keys.len(i.Lease.Key) == 0 {
			limits[i.Next.Limit] = append(limits[i.Next.Limit], i)
		}
	}
	for name, some := range limits {
		q.passWithin(ctx, name, some)
	}
}

func (q *Attempts) passWithin(ctx context.Context, name string, items []*Release) {
	reqs := make([]lease.SlotHandOver, len(items))
	for n, i := range items {
		h := lease.HandOver{From: i.Lease, To: i.Next.To}
		reqs[n] = lease.SlotHandOver{HandOver: h, Generation: i.Next.Generation}
		i.Next.Sent = time.Now()
	}
	var orphans []lease.Lease
	for n, a := range q.store.PassSlots(ctx, name, reqs) {
		i := items[n]
		i.Next.Answer, i.Answer.Err = a, a.Err
		if a.Err != nil || a.Unknown && !a.Granted {
			orphans = append(orphans, lease.Lease{Key: i.Lease.Key, Owner: i.Next.To.Owner})
		}
		i.state.passed = a.Unknown
		i.state.done = a.Err != nil || a.Granted // lost, or the limit has changed: its release says which
	}
	q.cfg.Asker.Orphans.AddLeases(orphans...)
}
