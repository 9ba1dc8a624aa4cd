package queue

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// GiveUp hands a single lease to the next waiter of this process, or else releases it. Several are
// released in one call: a hand-over would be a statement for each. Then it notifies the waiters of
// this process and of others.
func (q *Attempts) GiveUp(ctx context.Context, items []Release) {
	if items[0].Slot && q.store.SlotPasser != nil {
		q.passSlots(ctx, items)
	}
	due := 0
	for n := range items {
		if !items[n].state.done {
			due++
		}
	}
	alone := !q.notify.wakes.Load()
	for n := range items {
		i := &items[n]
		if i.state.done {
			continue
		}
		hand := due == 1 && !i.Left && !i.Lease.Shared && q.store.Passer != nil
		var w *waiter
		w, i.state.over = q.keys.claim(i.Lease.Key, hand, alone)
		if w != nil && q.handOn(ctx, i, w) { // it is the only one
			return
		}
	}
	if due > 0 {
		q.release(ctx, items)
	}
}

// release releases what is left of the items. A lease of a waiter that had left in a hand-over is
// no news to an item. Nor is it one that the row does not name a lease any more which may have been
// passed on.
func (q *Attempts) release(ctx context.Context, items []Release) {
	sent := time.Now()
	leases := leasesOf(items)
	var answers []lease.Released
	if len(leases) > 0 {
		answers = q.store.Release(ctx, leases)
	}
	var told []string
	var last []*Release // whose own waiters ask after the others were told
	for n := range items {
		i, a := &items[n], lease.Released{Gone: true}
		if i.state.done {
			continue
		}
		if !i.state.went {
			a, answers = answers[0], answers[1:]
		}
		i.state.got, i.Answer.Err = a, a.Err
		i.Answer.Gone = a.Gone && i.state.freed == i.Lease && !i.state.passed
		// If a transaction of the holder's has released the lease, no answer says whether others wait.
		// After an error the store is not asked: Unlock would wait for what hangs once more.
		byTx := i.Left && a.Gone && q.notify.sends.Load() && !q.quiet(i, sent)
		if a.Err == nil && (byTx || i.state.over && !a.Awaited && !a.Looked) {
			i.state.got.Looked = true
			i.state.got.Awaited = q.store.AnyAwaited(context.Background(), q.notify.process, i.Lease.Key)
		}
		tell, others := q.keys.released(i, sent, q.notify)
		if tell {
			told = append(told, i.Lease.Key)
		}
		if others {
			last = append(last, i)
		}
	}
	if len(told) > 0 {
		q.notify.Announce(told...)
	}
	for _, i := range last {
		q.keys.goLast(i, q.room())
	}
}

// quiet reports whether a release need not ask for other processes: none waited a moment ago. One
// that waits since has read a hold that began after that look. It polls a hold so young every
// PollMin, and where the key is busy within PollMax: no more is lost without a wake. Of a shared
// key it may have read a hold of an hour, and poll every 4 s. What waits for a slot does not poll.
func (q *Attempts) quiet(i *Release, now time.Time) bool {
	u := q.keys.of(i.Lease.Key)
	return !i.Lease.Shared && !i.Slot && u.quiet(now, min(4*q.cfg.PollMin, q.cfg.PollMax/4))
}

// released notes what a release at sent was answered. tell says that another process is to be woken
// now, unless this one is about to have the key again: then that is postponed. others says that the
// waiters of this process ask after those of others, which goLast sees to; else they ask now.
func (s *keys) released(i *Release, sent time.Time, n *notifications) (tell, others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, done := &i.state.got, i.Answer.Err == nil
	k := s.find(i.Lease.Key)
	if k == nil {
		return done && a.Awaited, false
	}
	if a.Looked && !i.Lease.Shared || a.Awaited { // readers leave a key that is still held
		k.looked, k.awaited = sent, a.Awaited
	}
	tell = done && a.Awaited
	if others = tell && i.state.over; done && n.wakes.Load() {
		if returns := k.ends(&s.policy, time.Now(), a.Awaited); returns && tell {
			s.postpone(k, i.Lease.Key, n.Announce)
			tell = false
		}
	}
	if others = others || tell; !others {
		k.holding = k.holding && !i.state.over
		if i.state.over || !a.Shared { // others go on holding it
			k.wake()
		}
	}
	return tell, others
}

// goLast has the waiters of this process ask for a key that was released: where it has spent its
// budget, after a time in which other processes ask. The pause after a time slice counts from now.
func (s *keys) goLast(i *Release, room time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(i.Lease.Key)
	if k == nil {
		return
	}
	k.released = time.Now()
	switch {
	case i.state.over:
		time.AfterFunc(room, func() { s.resume(i.Lease.Key) })
	case !i.state.got.Shared:
		k.wake()
	}
}

// handOn gives the key of i to w, the next waiter of this process. It reports false if the item is
// still to be released: the waiters had left when the answer came. Passed says that a try without
// an answer may have handed the lease over, and that it may have passed to other owners since.
func (q *Attempts) handOn(ctx context.Context, i *Release, w *waiter) (done bool) {
	orphans, asked := q.cfg.Asker.Orphans, false
	var to lease.Lease
	defer func() {
		if asked { // a driver has panicked: w would be in no queue, and wait for ever
			q.keys.giveBack(w)
			orphans.AddLeases(to)
		}
	}()
	for ; w != nil; w, i.state.over = q.keys.claim(i.Lease.Key, true, !q.notify.wakes.Load()) {
		next := w.call.Want.Request(w.key) // under a fresh owner for each attempt
		g := Grants{Sent: time.Now(), HandedOver: true, Each: []Grant{{Req: next}}}
		answer := &g.Each[0].Answer
		to, asked = g.Lease(0), true
		*answer = q.store.HandOver(ctx, []lease.HandOver{{From: i.state.freed, To: next}})[0]
		to.Token, asked = answer.Token, false
		switch {
		case errors.Is(answer.Err, lease.ErrMoved): // given up; the next waiter must ask where it is
			q.keys.giveBack(w)
			return true
		case answer.Err != nil:
			q.keys.giveBack(w)
			orphans.AddLeases(i.state.freed, to)
			i.Answer.Err = answer.Err
			return true
		case !answer.Granted: // lost, or the key's tokens have run out: its release says which
			q.keys.giveBack(w)
			if answer.Unknown {
				orphans.AddLeases(to)
				i.state.passed = true
			}
			return false
		case time.Since(g.Sent) >= next.TTL/2: // as in InTx.Made, but the holder has waited enough
			q.keys.giveBack(w)
			orphans.AddLeases(to)
			return true
		case q.keys.give(w, g):
			return true
		}
		if i.state.freed = to; answer.Unknown {
			orphans.AddLeases(to)
		}
	}
	return false
}
