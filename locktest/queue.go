package locktest

import (
	"github.com/rowlockdb/rowlock/lease"
)

var queueProperties = []property{
	{"a lease is passed to the first ticket", passedToTheFirst},
	{"tickets of one priority are served in the order they joined", servedInOrder},
	{"tickets that join in one batch are served in its order", servedInBatchOrder},
	{"a higher priority goes first", higherFirst},
	{"a priority is worth a head start and no more", headStart},
	{"joining again keeps the place", joinAgain},
	{"a dead ticket is passed over", deadPassedOver},
	{"a dead ticket that joins again goes to the end", deadJoinsAgain},
	{"a waiter that has left is passed over, and may leave again", leaveTwice},
	{"the queue of one key is nothing to another", queuesApart},
	{"a ticket of nobody, of no key or of no priority is refused", badTickets},
}

func (r *rig) queue() lease.Queue { return able[lease.Queue](r, r.here) }

// ticket is a new waiter's, of priority 5.
func ticket(key string) lease.Ticket {
	return lease.Ticket{AcquireRequest: request(key, lease.NewOwner()), Priority: 5}
}

// join gives a new waiter a ticket.
func (r *rig) join(key string) lease.Ticket {
	r.Helper()
	t := ticket(key)
	r.joinAll(t)
	return t
}

func (r *rig) joinAll(tickets ...lease.Ticket) {
	r.Helper()
	if _, err := r.queue().Join(r.ctx, tickets); err != nil {
		r.Fatalf("join: %v", err)
	}
}

func (r *rig) leave(tickets ...lease.Ticket) {
	r.Helper()
	if err := r.queue().Leave(r.ctx, waiters(tickets)); err != nil {
		r.Fatalf("leave: %v", err)
	}
}

func waiters(tickets []lease.Ticket) []lease.Lease {
	out := make([]lease.Lease, len(tickets))
	for i, t := range tickets {
		out[i] = lease.Lease{Key: t.Key, Owner: t.Owner}
	}
	return out
}

func (r *rig) places(tickets ...lease.Ticket) []lease.QueuePosition {
	r.Helper()
	places, err := r.queue().QueuePositions(r.ctx, waiters(tickets))
	if err != nil || len(places) != len(tickets) {
		r.Fatalf("places: %d answers to %d requests, %v", len(places), len(tickets), err)
	}
	for i, p := range places {
		if p.Err != nil {
			r.Fatalf("place in the queue of %q: %v", tickets[i].Key, p.Err)
		}
	}
	return places
}

func (r *rig) pass(l lease.Lease) lease.Passed {
	r.Helper()
	p, err := sole(r.queue().Pass(r.ctx, []lease.Lease{l}))
	if err == nil {
		err = p.Err
	}
	if err != nil {
		r.Fatalf("pass %q: %v", l.Key, err)
	}
	return p
}

// wantPassed passes l and returns the lease that next has got.
func (r *rig) wantPassed(l lease.Lease, next lease.Ticket) lease.Lease {
	r.Helper()
	p := r.pass(l)
	if p.Gone || p.To != next.Owner {
		r.Fatalf("%q was passed to %v (gone %t), want it passed to %v", l.Key, p.To, p.Gone, next.Owner)
	}
	got := lease.Lease{Key: l.Key, Owner: p.To, Token: p.Token}
	r.wantAbove(got, l)
	return got
}

// wantFreed passes l, whose key no ticket waits for.
func (r *rig) wantFreed(l lease.Lease) {
	r.Helper()
	if p := r.pass(l); p != (lease.Passed{}) {
		r.Errorf("%q was passed on: %+v, though no ticket waits", l.Key, p)
	}
	if row, _ := r.row(l.Key); row.Held || row.Token != l.Token {
		r.Errorf("without a waiter the row became %+v, want it free with token %d", row, l.Token)
	}
}

// wantServed passes l from one ticket to the next, until the last waiter finds no other.
func (r *rig) wantServed(l lease.Lease, order ...lease.Ticket) {
	r.Helper()
	for _, next := range order {
		l = r.wantPassed(l, next)
	}
	r.wantFreed(l)
}

func passedToTheFirst(r *rig) {
	l := r.take("k")
	first := r.join("k")
	r.join("k")
	r.wantHeld(l)
	next := r.wantPassed(l, first)
	r.wantRenew(l, lease.Lost)
	r.wantHeld(next)
}

func servedInOrder(r *rig) {
	l := r.take("k")
	var line []lease.Ticket
	for range 6 {
		line = append(line, r.join("k"))
	}
	r.wantServed(l, line...)
}

func servedInBatchOrder(r *rig) {
	l := r.take("k")
	batch := []lease.Ticket{ticket("k"), ticket("z"), ticket("k"), ticket("a"), ticket("k"), ticket("k")}
	r.joinAll(batch...)
	r.wantServed(l, batch[0], batch[2], batch[4], batch[5])
}

func higherFirst(r *rig) {
	l := r.take("k")
	line := make([]lease.Ticket, 4)
	for i, priority := range []int{1, 5, 10, 5} {
		line[i] = ticket("k")
		line[i].Priority = priority
		r.joinAll(line[i])
	}
	r.wantServed(l, line[2], line[1], line[3], line[0])
}

// headStart checks that a waiter is overtaken if it has waited a little less than a step is worth,
// and not if it has waited longer.
func headStart(r *rig) {
	r.queue()
	if r.h.AgeTicket == nil {
		r.Skip("Harness.AgeTicket is nil")
	}
	for _, step := range []int{1, 4} {
		l := r.take("k")
		young, old, high := ticket("k"), ticket("k"), ticket("k")
		high.Priority = young.Priority + step
		r.joinAll(young, old)
		worth := lease.Ticket{Priority: step}.HeadStart()
		r.h.AgeTicket(r.TB, r.here, "k", young.Owner, worth/2)
		r.h.AgeTicket(r.TB, r.here, "k", old.Owner, worth+lease.PriorityStep/2)
		r.joinAll(high)
		r.wantServed(l, old, high, young)
	}
}

func joinAgain(r *rig) {
	l := r.take("k")
	first, second := r.join("k"), r.join("k")
	for range 3 {
		r.joinAll(first)
	}
	first.Note = "still here"
	r.joinAll(second, first)
	r.wantServed(l, first, second)
}

func (r *rig) expireTicket(t lease.Ticket) {
	r.Helper()
	r.queue()
	if r.h.ExpireTicket == nil {
		r.Skip("Harness.ExpireTicket is nil")
	}
	r.h.ExpireTicket(r.TB, r.here, t.Key, t.Owner)
}

func deadPassedOver(r *rig) {
	r.queue()
	l := r.take("k")
	dead, next, last := r.join("k"), r.join("k"), r.join("k")
	r.expireTicket(dead)
	l = r.wantPassed(l, next)
	r.expireTicket(last)
	r.wantFreed(l)
	r.takeAfter(l)
}

func deadJoinsAgain(r *rig) {
	r.queue()
	l := r.take("k")
	dead, next := r.join("k"), r.join("k")
	r.expireTicket(dead)
	r.joinAll(dead)
	r.wantServed(l, next, dead)
}

func leaveTwice(r *rig) {
	r.queue()
	l := r.take("k")
	gone, next, never := r.join("k"), r.join("k"), ticket("k")
	r.leave(gone, never)
	r.leave(gone)
	r.wantServed(l, next)
	r.leave(next)
}

func queuesApart(r *rig) {
	r.queue()
	a, b := r.take("a"), r.take("A")
	first := r.join("A")
	r.wantFreed(a)
	r.leave(lease.Ticket{AcquireRequest: request("a", first.Owner)})
	r.wantServed(b, first)
}

func badTickets(r *rig) {
	q := r.queue()
	l := r.take("k")
	bad := make([]lease.Ticket, 4)
	for i := range bad {
		bad[i] = ticket("k")
	}
	bad[0].Owner, bad[1].Key, bad[2].Priority, bad[3].Priority = lease.Owner{}, "", 0, 11
	for _, t := range bad {
		if _, err := q.Join(r.ctx, []lease.Ticket{t, ticket("k")}); err == nil {
			r.Errorf("joined: %+v", t)
		}
	}
	r.wantFreed(l)
}
