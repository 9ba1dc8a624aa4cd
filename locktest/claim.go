package locktest

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var claimProperties = []property{
	{"a claim of a held key is told who holds it and writes nothing", claimHeld},
	{"a claim is refused while another is ahead and writes nothing", claimBehind},
	{"the first in the queue is granted a free, an expired or a new key", claimFirst},
	{"a claim without a ticket is granted only if nobody waits", claimUnasked},
	{"the tickets of the dead hold up no claim", claimPastDead},
	{"a ticket is used up by a claim", usedByClaim},
	{"a repeated claim is the same lease", claimTwice},
	{"a claim by nobody is granted nothing", claimByNobody},
	{"a claim does not wait for a late holder's fence", claimUnderFence},
}

func claimOne(ctx context.Context, q lease.Queue, req lease.AcquireRequest) (lease.Acquired, error) {
	a, err := sole(q.Claim(ctx, []lease.AcquireRequest{req}))
	if err == nil {
		err = a.Err
	}
	return a, err
}

func (r *rig) claim(req lease.AcquireRequest) lease.Acquired {
	r.Helper()
	a, err := claimOne(r.ctx, r.queue(), req)
	if err != nil {
		r.Fatalf("claim %q: %v", req.Key, err)
	}
	return a
}

// wantClaimed claims a key as the head of its queue.
func (r *rig) wantClaimed(req lease.AcquireRequest) lease.Lease {
	r.Helper()
	a := r.claim(req)
	if !a.Granted || a.Token <= 0 {
		r.Fatalf("claim %q: %+v, want it granted", req.Key, a)
	}
	return lease.Lease{Key: req.Key, Owner: req.Owner, Token: a.Token}
}

// wantRefused claims a key out of order, which must leave the row as it is.
func (r *rig) wantRefused(req lease.AcquireRequest) lease.Acquired {
	r.Helper()
	before, was := r.row(req.Key)
	a := r.claim(req)
	if a.Granted {
		r.Fatalf("claim %q: granted with token %d out of order", req.Key, a.Token)
	}
	after, is := r.row(req.Key)
	if is != was || after.Lease != before.Lease || after.Note != before.Note || after.Remaining > before.Remaining+tolerance {
		r.Errorf("after a claim that was refused the row is %+v, before it was %+v", after, before)
	}
	return a
}

func claimHeld(r *rig) {
	q := request("k", lease.NewOwner())
	q.Note = "holder"
	r.queue()
	l := r.wantClaimed(q)
	first := r.join("k")
	for _, req := range []lease.AcquireRequest{first.AcquireRequest, request("k", lease.NewOwner())} {
		a := r.wantRefused(req)
		if a.Holder.Note != "holder" || a.Holder.Remaining <= 0 || a.Holder.Remaining > ttl {
			r.Errorf("the claim of a held key was answered %+v", a.Holder)
		}
	}
	if p := r.places(first)[0]; p.Missing {
		r.Error("a claim that was refused cost the waiter his ticket")
	}
	r.wantHeld(l)
	r.wantServed(l, first)
}

func claimBehind(r *rig) {
	r.queue()
	free := r.take("free")
	r.wantRelease(free, false)
	r.take("expired")
	r.expire("expired")
	for _, key := range []string{"free", "expired", "new"} {
		first, second := r.join(key), r.join(key)
		if a := r.wantRefused(second.AcquireRequest); a.Holder.Remaining > 0 {
			r.Errorf("the claim of a free key was answered %+v", a.Holder)
		}
		r.wantServed(r.wantClaimed(first.AcquireRequest), second)
	}
}

func claimFirst(r *rig) {
	r.queue()
	l := r.wantClaimed(r.join("k").AcquireRequest)
	r.wantHeld(l)
	r.wantFreed(l)
	next := r.wantClaimed(r.join("k").AcquireRequest)
	r.wantAbove(next, l)
	r.expire("k")
	last := r.wantClaimed(r.join("k").AcquireRequest)
	r.wantAbove(last, next)
	r.wantRenew(next, lease.Lost)
	r.wantHeld(last)
}

func claimUnasked(r *rig) {
	r.queue()
	for _, end := range []func(l lease.Lease){
		func(l lease.Lease) { r.wantRelease(l, false) },
		func(l lease.Lease) { r.expire(l.Key) },
		func(l lease.Lease) { r.wantRelease(l, false); r.sweepIfAble() },
	} {
		end(r.wantClaimed(request("k", lease.NewOwner())))
		waiting := r.join("k")
		r.wantRefused(request("k", lease.NewOwner()))
		r.leave(waiting)
		l := r.wantClaimed(request("k", lease.NewOwner()))
		r.wantFreed(l)
	}
}

func (r *rig) sweepIfAble() {
	r.Helper()
	if r.canSweep() {
		r.sweepAll()
	}
}

func claimPastDead(r *rig) {
	r.queue()
	dead, mine := r.join("k"), r.join("k")
	r.expireTicket(dead)
	l := r.wantClaimed(mine.AcquireRequest)
	r.wantFreed(l)
	r.wantClaimed(request("k", lease.NewOwner()))
	// A waiter whose ticket has expired is behind those that joined meanwhile, as if it had no
	// ticket.
	slow, next := r.join("j"), r.join("j")
	r.expireTicket(slow)
	r.wantRefused(slow.AcquireRequest)
	r.wantClaimed(next.AcquireRequest)
}

func usedByClaim(r *rig) {
	r.queue()
	for _, key := range []string{"new", "new", "expired"} { // the second time it has a row
		if key == "expired" {
			r.take(key)
			r.expire(key)
		}
		first := r.join(key)
		l := r.wantClaimed(first.AcquireRequest)
		r.wantFreed(l)
		if p := r.places(first)[0]; !p.Missing {
			r.Errorf("after its claim a ticket stands at %+v", p)
		}
	}
}

// claimTwice is a lost reply.
func claimTwice(r *rig) {
	first := r.join("k")
	l := r.wantClaimed(first.AcquireRequest)
	second := r.join("k")
	for range 3 {
		if again := r.claim(first.AcquireRequest); !again.Granted || again.Token != l.Token {
			r.Fatalf("the same owner claims again: %+v, want granted with token %d", again, l.Token)
		}
	}
	r.wantServed(l, second)
}

func claimByNobody(r *rig) {
	q := r.queue()
	for _, end := range []func(){func() {}, func() { r.wantRelease(r.take("k"), false) }} {
		end()
		if a, err := claimOne(r.ctx, q, request("k", lease.Owner{})); err == nil && a.Granted {
			r.Errorf("the zero owner was granted the key with token %d", a.Token)
		}
	}
}

func claimUnderFence(r *rig) {
	r.queue()
	r.fencer()
	l := r.take("k")
	var first lease.Ticket
	for range 2 { // once without a ticket, and once with one
		r.expire("k")
		tx := r.begin()
		r.fence(tx, l)
		req := request("k", lease.NewOwner())
		if first.Key != "" {
			req = first.AcquireRequest
		}
		start := time.Now()
		a := r.claim(req)
		if a.Granted || time.Since(start) > r.h.limit()/10 {
			r.Fatalf("a claim under a fence: %+v after %v", a, time.Since(start))
		}
		r.commit(tx)
		r.eventually("a claim after the fence", func() bool {
			a = r.claim(req)
			return a.Granted
		})
		l = lease.Lease{Key: "k", Owner: req.Owner, Token: a.Token}
		first = r.join("k")
	}
}
