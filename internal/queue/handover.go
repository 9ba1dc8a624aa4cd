package queue

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/lease"
)

// GiveUp hands a single lease to the next waiter of this process, or else releases it. Several are
// released in one call: a hand-over would be a statement for each. Then it notifies the waiters of
// this process and of others.
func (q *Attempts) GiveUp(ctx context.Context, items []*Release) {
	if items[0].Slot && q.store.PassesSlots() {
		if items = q.passSlots(ctx, items); len(items) == 0 {
			return
		}
	}
	for _, i := range items {
		i.Over = q.local.Len(i.Lease.Key) > 0 && q.spent(i.Lease.Key)
	}
	if i := items[0]; len(items) == 1 && !i.Over && !i.Left && !i.Lease.Shared {
		if q.handOn(ctx, i) {
			return
		}
	}
	q.release(ctx, items)
}

// Kept notes that this process is done with key: no release of it follows.
func (q *Attempts) Kept(key string) { q.budget.Left(key, time.Now()) }

// release releases what is left of the items. A lease of a waiter that had left in a hand-over is
// no news to an item. Nor is it one that the row does not name a lease any more which may have been
// passed on.
func (q *Attempts) release(ctx context.Context, items []*Release) {
	for _, i := range items {
		if i.Over {
			q.local.Hold(i.Lease.Key)
		}
	}
	sent := time.Now()
	answers := sendDue(items, lease.Released{Gone: true}, func(l []lease.Lease) []lease.Released {
		return q.store.Release(ctx, l)
	})
	for n, a := range answers {
		i := items[n]
		if i.Answer = a; a.Looked || a.Awaited {
			q.budget.Looked(i.Lease.Key, a.Awaited, sent)
		}
		i.Gone = a.Gone && i.Freed() == i.Lease && !i.Passed
		i.Err = a.Err
	}
	q.announceAll(items)
	for _, i := range items {
		if !i.Answer.Shared || i.Over { // others go on holding it
			q.wakeLocal(i)
		}
	}
}

// announceAll notifies other processes of the keys that they wait for, in one statement. It notes
// in the answers what the store was asked again.
func (q *Attempts) announceAll(items []*Release) {
	var now []string
	for _, i := range items {
		a := &i.Answer
		if i.Err != nil {
			continue
		}
		// A transaction of the holder's, which is over, has released the lease: no answer tells who
		// waits.
		byTx := i.Left && a.Gone && q.notify.Sends()
		if byTx || i.Over && !a.Awaited && !a.Looked {
			ctx, cancel := context.WithTimeout(context.Background(), seam.Timeout)
			asked := time.Now()
			a.Awaited = q.notify.Awaited(ctx, i.Lease.Key)
			cancel()
			q.budget.Looked(i.Lease.Key, a.Awaited, asked)
		}
		if q.announces(i.Lease.Key, a.Awaited) {
			now = append(now, i.Lease.Key)
		}
	}
	if len(now) > 0 {
		q.notify.Announce(now...)
	}
	for _, key := range now {
		q.budget.Left(key, time.Now()) // the pause after a time slice counts from now
	}
}

// wakeLocal has the waiters of this process bid. Where it has spent its budget, other processes bid
// first if any wait. After an error the store is not asked for them, because it hangs or is down,
// and the caller of Unlock would wait for it once more.
func (q *Attempts) wakeLocal(i *Release) {
	key := i.Lease.Key
	switch {
	case i.Over && i.Answer.Awaited && i.Err == nil:
		time.AfterFunc(q.room(), func() { q.local.Resume(key) })
	case i.Over:
		q.local.Resume(key)
	default:
		q.local.Wake(key)
	}
}

// handOn gives the key of i to the next waiter of this process. It reports false if the item is
// still to be released: there is no waiter for its key, or one that had left when the answer came.
// Passed says that a try without an answer may have handed the lease over, and that it may have
// passed to other owners since.
func (q *Attempts) handOn(ctx context.Context, i *Release) (done bool) {
	if !q.store.Hands() {
		return false
	}
	orphans := q.cfg.Asker.Orphans
	for {
		w := q.local.Claim(i.Lease.Key)
		if w == nil {
			return false
		}
		g := q.handOver(ctx, i.Freed(), w)
		to, answer := g.Lease(0), &g.Each[0].Answer
		switch {
		case errors.Is(answer.Err, lease.ErrMoved): // given up; the next waiter must ask for its home
			q.local.Return(w)
			return true
		case answer.Err != nil:
			q.local.Return(w)
			orphans.AddLeases(i.Freed(), to)
			i.Err = answer.Err
			return true
		case !answer.Granted: // lost, or the key's tokens have run out: its release says which
			q.local.Return(w)
			if answer.Doubtful {
				orphans.AddLeases(to)
				i.Passed = true
			}
			return false
		case q.local.Give(w, g):
			return true
		}
		if i.Given = to; answer.Doubtful {
			orphans.AddLeases(to)
		}
	}
}

// handOver asks the store, under a fresh owner for each attempt.
func (q *Attempts) handOver(ctx context.Context, from lease.Lease, w *waiter) Grants {
	to := w.Want.call.Want.Request(w.Key)
	g := Grants{Sent: time.Now(), HandedOver: true}
	answer := q.store.HandOver(ctx, []lease.HandOver{{From: from, To: to}})[0]
	g.Each = []Grant{{Req: to, Answer: answer}}
	return g
}
