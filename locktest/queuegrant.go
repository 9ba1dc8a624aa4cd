package locktest

import (
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// queueGrantProperties are about what a pass does to the row.
var queueGrantProperties = []property{
	{"a passed lease has the ticket's owner, note and full TTL, and a higher token", passedLease},
	{"a ticket is used up when the key is passed to it", usedByPass},
	{"a heartbeat after the grant brings no ticket back", lateJoin},
	{"a pass with nobody waiting frees the key", passFrees},
	{"a pass of what is gone says so and changes nothing", passGone},
	{"token 0 passes whatever the owner was given", passByOwner},
	{"nobody is passed what is his own", notToOneself},
	{"a key whose tokens have run out is freed and not passed", passExhausted},
}

func passedLease(r *rig) {
	r.queue()
	l := r.take("k")
	next := ticket("k")
	next.Note, next.TTL = "é'\"\\%"+longestNote()[len("ö€🔒"):], 2*ttl
	r.joinAll(next)
	start := time.Now()
	got := r.wantPassed(l, next)
	row, _ := r.row("k")
	if row.Lease != got || !row.Held || row.Note != next.Note {
		r.Errorf("the row is %+v, want it held by %+v with note %q", row, got, next.Note)
	}
	if row.Age > time.Since(start)+tolerance {
		r.Errorf("a lease passed on a moment ago is %v old", row.Age)
	}
	r.wantRemaining("k", start, next.TTL)
	r.wantAbove(got, l)
	r.wantRenew(got, lease.Extended)
}

func usedByPass(r *rig) {
	r.queue()
	l := r.take("k")
	first, second := r.join("k"), r.join("k")
	l = r.wantPassed(l, first)
	r.wantServed(l, second)
	if p := r.places(first)[0]; !p.Missing {
		r.Errorf("a ticket that was served stands at %+v", p)
	}
}

// lateJoin is a heartbeat that was under way when the key was passed on.
func lateJoin(r *rig) {
	r.queue()
	l := r.take("k")
	first := r.join("k")
	l = r.wantPassed(l, first)
	r.joinAll(first)
	r.wantFreed(l)
	r.takeAfter(l)
}

func passFrees(r *rig) {
	r.queue()
	l := r.take("k")
	for range 3 {
		r.wantFreed(l)
		r.wantRenew(l, lease.Lost)
		l = r.takeAfter(l)
	}
}

func passGone(r *rig) {
	r.queue()
	l := r.take("k")
	first := r.join("k")
	stale, unknown, foreign := l, l, l
	stale.Token, unknown.Key, foreign.Owner = l.Token+1, "unknown", lease.NewOwner()
	for _, g := range []lease.Lease{stale, unknown, foreign, {Key: "k", Token: l.Token}, {Key: "k"}} {
		if p := r.pass(g); p != (lease.Passed{Gone: true}) {
			r.Errorf("passing %+v of %+v: %+v", g, l, p)
		}
	}
	r.wantHeld(l)
	next := r.wantPassed(l, first)
	r.join("k")
	for range 2 { // the reply was lost, and the request is sent again
		if p := r.pass(l); p != (lease.Passed{Gone: true}) {
			r.Errorf("a second pass: %+v", p)
		}
	}
	r.wantHeld(next)
	if row, ok := r.row("unknown"); ok {
		r.Errorf("a pass of a key without row left %+v", row)
	}
}

func passByOwner(r *rig) {
	r.queue()
	l := r.take("k")
	first := r.join("k")
	byOwner := lease.Lease{Key: "k", Owner: l.Owner}
	next := r.wantPassed(byOwner, first)
	r.wantAbove(next, l)
	if p := r.pass(byOwner); !p.Gone {
		r.Errorf("a second pass by owner: %+v", p)
	}
	r.wantHeld(next)
}

func notToOneself(r *rig) {
	r.queue()
	t := r.join("k")
	l := r.takeAs("k", t.Owner) // out of order
	next := r.join("k")
	r.wantPassed(l, next)
}

func passExhausted(r *rig) {
	r.queue()
	if r.h.SetToken == nil {
		r.Skip("Harness.SetToken is nil")
	}
	l := r.take("k")
	r.h.SetToken(r.TB, r.here, "k", lease.MaxToken-1)
	l.Token = lease.MaxToken - 1
	first := r.join("k")
	r.wantFreed(l)
	if a, err := claimOne(r.ctx, r.queue(), first.AcquireRequest); !errors.Is(err, lease.ErrTokenExhausted) {
		r.Errorf("a claim of a key whose tokens have run out: %+v, %v", a, err)
	}
}
