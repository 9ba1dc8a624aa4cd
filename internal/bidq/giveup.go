package bidq

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/acquire"
	"github.com/rowlockdb/rowlock/internal/handback"
	"github.com/rowlockdb/rowlock/lease"
)

// GiveUp hands a single lease to the next waiter of this process, or else releases it. Several are
// released in one call: a hand-over would be a statement for each. Then it notifies the waiters of
// this process and of others.
func (q *Queue) GiveUp(ctx context.Context, items []*handback.Item) {
	if items[0].Slot && q.store.PassesSlots() {
		if items = q.passSlots(ctx, items); len(items) == 0 {
			return
		}
	}
	leases := handback.Leases(items)
	for _, i := range items {
		i.Over = q.local.Len(i.Lease.Key) > 0 &&
			(q.budget.Spent(i.Lease.Key, time.Now()) || q.relay.spent(i.Lease.Key))
	}
	if i := items[0]; len(items) == 1 && !i.Over && !i.Left && !i.Lease.Shared {
		left, doubtful, err := q.handOn(ctx, i.Lease)
		if i.Err = err; err != nil || left.Owner.IsZero() {
			q.relay.handed(i.Lease.Key)
			return
		}
		leases[0], i.Passed = left, i.Passed || doubtful
	}
	q.release(ctx, leases, items)
}

// Kept ends this process's turn: no release of key follows.
func (q *Queue) Kept(key string) {
	q.budget.Left(key, time.Now())
	q.relay.endures(key)
}

// release releases leases. Those of a waiter that had left in a hand-over are no news to an item.
// Nor is it one that the row does not name a lease any more which may have been passed on.
func (q *Queue) release(ctx context.Context, leases []lease.Lease, items []*handback.Item) {
	for _, i := range items {
		i.Turn = q.relay.leaves(i.Lease.Key)
		if i.Over && !q.relay.waits(i.Lease.Key) {
			q.local.Hold(i.Lease.Key)
		}
	}
	sent := time.Now()
	answers := q.store.Release(ctx, leases)
	for n, i := range items {
		if a := &answers[n]; a.Looked {
			q.budget.Looked(i.Lease.Key, a.Awaited, sent)
		}
		i.Gone = answers[n].Gone && leases[n] == i.Lease && !i.Passed
		i.Err = answers[n].Err
	}
	q.announceAll(answers, items)
	for n, i := range items {
		if !answers[n].Shared || i.Over { // others go on holding it
			q.wakeLocal(i, answers[n].Awaited)
		}
	}
}

// announceAll notifies other processes of the keys that they wait for, in one statement. It notes
// in the answers what the store was asked again.
func (q *Queue) announceAll(answers []lease.Released, items []*handback.Item) {
	var now []string
	for n, i := range items {
		a := &answers[n]
		if i.Err != nil {
			continue
		}
		// A transaction of the holder's, which is over, has released the lease: no answer tells who
		// waits.
		byTx := i.Left && a.Gone && q.hints.Sends()
		if byTx || i.Over && !a.Awaited && !a.Looked {
			a.Awaited = q.awaited(i.Lease.Key)
		}
		if q.announces(i.Lease.Key, a.Awaited, i.Turn) {
			now = append(now, i.Lease.Key)
		}
	}
	if len(now) == 0 {
		return
	}
	q.hints.Announce(now...)
	if q.hints.Wakes() { // only there are turns, for which the budget counts from now
		for _, key := range now {
			q.budget.Left(key, time.Now())
		}
	}
}

// wakeLocal has the waiters of this process bid. Where it has spent its budget, other processes bid
// first if any wait. After an error the store is not asked for them, because it hangs or is down,
// and the caller of Unlock would wait for it once more.
func (q *Queue) wakeLocal(i *handback.Item, awaited bool) {
	key := i.Lease.Key
	q.cfg.Asker.Freed(key)
	switch {
	case i.Err == nil && q.relay.waits(key):
		if q.local.Len(key) > 0 { // the poller forgets keys without waiters
			q.poller.Rest(key, q.relay.rest())
		}
	case i.Over && awaited && i.Err == nil:
		time.AfterFunc(q.room(), func() { q.local.Resume(key) })
	case i.Over:
		q.local.Resume(key)
	default:
		q.local.Wake(key)
	}
}

// handOn gives held to the next waiter of this process. left is what is still to be released: held
// itself if there is no waiter for it, the zero Lease if it was handed over, or the lease of a
// waiter that had left when the answer came. doubtful says that left may have been handed over by a
// try without an answer, and may have passed to other owners since.
func (q *Queue) handOn(ctx context.Context, held lease.Lease) (
	left lease.Lease, doubtful bool, err error,
) {
	if !q.store.Hands() {
		return held, false, nil
	}
	for left = held; ; {
		w := q.local.Claim(held.Key)
		if w == nil {
			return left, false, nil
		}
		g := q.handOver(ctx, left, w)
		to, answer := g.Lease(0), g.Answers[0]
		switch {
		case errors.Is(answer.Err, lease.ErrMoved): // given up; the next waiter must ask for its home
			q.local.Return(w)
			return lease.Lease{}, false, nil
		case answer.Err != nil:
			q.local.Return(w)
			q.cfg.Asker.Orphans.Add(held.Key, left.Owner)
			q.cfg.Asker.Orphans.Add(held.Key, to.Owner)
			return left, false, answer.Err
		case !answer.Granted: // lost, or the key's tokens have run out: its release says which
			q.local.Return(w)
			if answer.Doubtful {
				q.cfg.Asker.Orphans.Add(held.Key, to.Owner)
			}
			return left, answer.Doubtful, nil
		case q.local.Give(w, g):
			return lease.Lease{}, false, nil
		}
		left = to
	}
}

// handOver asks the store, under a fresh owner for each attempt.
func (q *Queue) handOver(ctx context.Context, from lease.Lease, w *waiter) acquire.Grants {
	to := w.Want.call.Want.Request(w.Key)
	g := acquire.Grants{Reqs: []lease.AcquireRequest{to}, Sent: time.Now(), HandedOver: true}
	g.Answers = q.store.HandOver(ctx, []lease.HandOver{{From: from, To: to}})
	return g
}
