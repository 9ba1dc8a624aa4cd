package locktest

import (
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.Passer.
var handOverProperties = []property{
	{"a held lease is handed over with the next token", handOverGrants},
	{"the old owner has nothing after a hand-over", handOverEnds},
	{"a hand-over takes owner, note and full TTL from the request", handOverRow},
	{"an expired lease that nobody took can be handed over", handOverExpired},
	{"what is gone is not handed over", handOverGone},
	{"a repeated hand-over returns the lease as it is", handOverAgain},
	{"a hand-over of exhausted tokens gives nothing", handOverExhausted},
	{"a hand-over to nobody or to another key is refused", handOverRefused},
	{"64 hand-overs of one lease grant once", handOverRace},
}

func (r *rig) passer() lease.Passer { return able[lease.Passer](r, r.here) }

// handOver gives l to a new owner, or reports that it was not granted.
func (r *rig) handOver(l lease.Lease, to lease.Owner) (lease.Lease, bool) {
	r.Helper()
	a, err := sole(r.passer().HandOver(r.ctx, []lease.HandOver{{From: l, To: request(l.Key, to)}}))
	if err == nil {
		err = a.Err
	}
	if err != nil {
		r.Fatalf("hand over %q with token %d: %v", l.Key, l.Token, err)
	}
	return lease.Lease{Key: l.Key, Owner: to, Token: a.Token}, a.Granted
}

func (r *rig) handOn(l lease.Lease) lease.Lease {
	r.Helper()
	next, ok := r.handOver(l, lease.NewOwner())
	if !ok {
		r.Fatalf("%q with token %d was not handed over", l.Key, l.Token)
	}
	return next
}

func handOverGrants(r *rig) {
	l := r.take("k")
	for range 3 {
		next := r.handOn(l)
		if next.Token != l.Token+1 {
			r.Errorf("handed over with token %d after %d", next.Token, l.Token)
		}
		r.wantHeld(next)
		l = next
	}
	r.wantRelease(l, false)
	r.takeAfter(l)
}

func handOverEnds(r *rig) {
	l := r.take("k")
	next := r.handOn(l)
	r.wantRenew(l, lease.Lost)
	r.wantRelease(l, true)
	r.wantRelease(lease.Lease{Key: "k", Owner: l.Owner}, true)
	if _, ok := r.handOver(l, lease.NewOwner()); ok {
		r.Error("handed over twice")
	}
	r.wantHeld(next)
}

func handOverRow(r *rig) {
	r.passer()
	l := r.take("k")
	q := request("k", lease.NewOwner())
	q.Note, q.TTL = "me now", 2*ttl
	start := time.Now()
	a, err := sole(r.passer().HandOver(r.ctx, []lease.HandOver{{From: l, To: q}}))
	if err != nil || !a.Granted {
		r.Fatalf("got %+v, %v", a, err)
	}
	row, _ := r.row("k")
	if row.Owner != q.Owner || row.Note != q.Note || row.Token != a.Token || !row.Held {
		r.Errorf("the row is %+v", row)
	}
	// A busy machine may take long to answer, and the lease grows old meanwhile.
	if age := time.Since(start) + tolerance; row.Remaining < q.TTL-age || row.Age > age {
		r.Errorf("the row is %+v", row)
	}
}

func handOverExpired(r *rig) {
	r.passer()
	l := r.take("k")
	r.expire("k")
	r.wantHeld(r.handOn(l))
}

func handOverGone(r *rig) {
	r.passer()
	first := r.take("k")
	r.expire("k")
	second := r.takeAfter(first)
	wrong := second
	wrong.Token++
	for _, l := range []lease.Lease{first, wrong, {Key: "absent", Owner: lease.NewOwner(), Token: 1}} {
		if next, ok := r.handOver(l, lease.NewOwner()); ok {
			r.Errorf("%+v was handed over as %+v", l, next)
		}
	}
	r.wantHeld(second)
	r.wantRelease(second, false)
	if _, ok := r.handOver(second, lease.NewOwner()); ok {
		r.Error("a released lease was handed over")
	}
	if row, ok := r.row("absent"); ok {
		r.Errorf("a hand-over made the row %+v", row)
	}
}

func handOverAgain(r *rig) {
	l := r.take("k")
	to := lease.NewOwner()
	first, _ := r.handOver(l, to)
	again, ok := r.handOver(l, to)
	if !ok || again != first {
		r.Errorf("first %+v, then %+v, granted %t", first, again, ok)
	}
}

func handOverExhausted(r *rig) {
	r.passer()
	if r.h.SetToken == nil {
		r.Skip("no SetToken")
	}
	l := r.take("k")
	r.h.SetToken(r.TB, r.here, "k", lease.MaxToken-1)
	l.Token = lease.MaxToken - 1
	if next, ok := r.handOver(l, lease.NewOwner()); ok {
		r.Errorf("granted with token %d", next.Token)
	}
}

func handOverRefused(r *rig) {
	l := r.take("k")
	for _, to := range []lease.AcquireRequest{request("k", lease.Owner{}), request("other", lease.NewOwner())} {
		a, err := sole(r.passer().HandOver(r.ctx, []lease.HandOver{{From: l, To: to}}))
		if err == nil && a.Err == nil || a.Granted {
			r.Errorf("to %+v: got %+v, %v", to, a, err)
		}
	}
	r.wantHeld(l)
}

func handOverRace(r *rig) {
	p := r.passer()
	l := r.take("k")
	var granted atomic.Int32
	together(64, func(int) {
		a, err := sole(p.HandOver(r.ctx, []lease.HandOver{{From: l, To: request("k", lease.NewOwner())}}))
		if err != nil || a.Err != nil {
			r.Errorf("hand over: %v %v", err, a.Err)
		}
		if a.Granted {
			granted.Add(1)
		}
	})
	if n := granted.Load(); n != 1 {
		r.Errorf("%d hand-overs of one lease were granted", n)
	}
}
