package locktest

import (
	"errors"

	"github.com/rowlockdb/rowlock/lease"
)

// Of a store that is a lease.Raiser.
var raiseProperties = []property{
	{"a raised lease has the new token, and the next grant a higher one", raiseRaises},
	{"a raise leaves owner, note and expiry alone", raiseLeavesRest},
	{"a repeated raise answers as the first", raiseAgain},
	{"only the lease that the row names is raised", raiseGone},
	{"an expired or released lease is not raised", raiseDead},
	{"a token is not lowered, nor raised beyond the last", raiseRefused},
	{"several leases are raised in one batch, answered in order", raiseInOrder},
}

// raise raises the leases, each to its own token, in one batch.
func (r *rig) raise(reqs ...lease.RaiseRequest) []lease.Raised {
	r.Helper()
	s := able[lease.Raiser](r, r.here)
	answers, err := s.Raise(r.ctx, reqs)
	if len(answers) != len(reqs) {
		r.Fatalf("raise: %d answers to %d requests, %v", len(answers), len(reqs), err)
	}
	if err != nil && len(reqs) == 1 {
		answers[0].Err = err // a batch of one
	} else if err != nil {
		r.Fatalf("raise: %v", err)
	}
	return answers
}

// wantRaise raises l, or wants it to be gone.
func (r *rig) wantRaise(l lease.Lease, to lease.Token, gone bool) lease.Lease {
	r.Helper()
	got := r.raise(lease.RaiseRequest{Lease: l, To: to})[0]
	if got.Err != nil || got.Gone != gone {
		r.Fatalf("raise %q from token %d to %d: %+v, want gone %t", l.Key, l.Token, to, got, gone)
	}
	l.Token = to
	return l
}

func raiseRaises(r *rig) {
	old := r.take("k")
	l := old
	for _, by := range []lease.Token{1, 41, 1 << 33} {
		l = r.wantRaise(l, l.Token+by, false)
		r.wantHeld(l)
		if again := r.try(r.there(), "k", l.Owner); !again.Granted || again.Token != l.Token {
			r.Errorf("the owner asks again: %+v, want token %d", again, l.Token)
		}
	}
	r.wantRenew(old, lease.Lost)
	r.wantRelease(old, true)
	r.wantRelease(l, false)
	r.wantHeld(r.takeAfter(l))
}

func raiseLeavesRest(r *rig) {
	q := request("k", lease.NewOwner())
	q.Note = "as it was"
	a, err := acquireOne(r.ctx, r.here, q)
	if err != nil || !a.Granted {
		r.Fatalf("acquire: %+v, %v", a, err)
	}
	before, _ := r.row("k")
	l := r.wantRaise(before.Lease, a.Token+7, false)
	after, _ := r.row("k")
	if after.Lease != l || !after.Held || after.Note != q.Note {
		r.Errorf("a raise to %d made of %+v this: %+v", l.Token, before, after)
	}
	if after.Remaining > before.Remaining+tolerance || after.Age < before.Age-tolerance {
		r.Errorf("a raise moved the lease's times: %+v, before %+v", after, before)
	}
}

func raiseAgain(r *rig) {
	old := r.take("k")
	l := r.wantRaise(old, old.Token+5, false)
	r.wantRaise(old, old.Token+5, false)
	r.wantRaise(l, l.Token, false)
	r.wantHeld(l)
}

func raiseGone(r *rig) {
	l := r.take("k")
	other, later := l, l
	other.Owner = lease.NewOwner()
	later.Token++
	r.wantRaise(other, l.Token+5, true)
	r.wantRaise(later, l.Token+5, true)
	r.wantRaise(lease.Lease{Key: "never", Owner: l.Owner, Token: 1}, 5, true)
	if row, ok := r.row("never"); ok {
		r.Errorf("a raise of a key without row left %+v", row)
	}
	r.wantHeld(l)
}

func raiseDead(r *rig) {
	expired := r.take("expired")
	r.expire("expired")
	r.wantRaise(expired, expired.Token+5, true)
	released := r.take("released")
	r.wantRelease(released, false)
	r.wantRaise(released, released.Token+5, true)
	second := r.takeAs("released", released.Owner)
	r.wantRaise(released, second.Token+5, true)
	r.wantHeld(second)
}

func raiseRefused(r *rig) {
	l := r.take("k")
	for _, bad := range []struct {
		to   lease.Token
		want error
	}{{l.Token - 1, lease.ErrConfig}, {lease.MaxToken, lease.ErrTokenExhausted}} {
		got := r.raise(lease.RaiseRequest{Lease: l, To: bad.to})[0]
		if !errors.Is(got.Err, bad.want) {
			r.Errorf("raise from %d to %d: %+v, want %v", l.Token, bad.to, got, bad.want)
		}
	}
	r.wantHeld(l)
}

func raiseInOrder(r *rig) {
	leases, _ := r.takeAll("d", "a", "c", "b")
	reqs := make([]lease.RaiseRequest, len(leases))
	for i, l := range leases {
		reqs[i] = lease.RaiseRequest{Lease: l, To: l.Token + lease.Token(10*(i+1))}
	}
	reqs[2].Owner = lease.NewOwner()
	for i, got := range r.raise(reqs...) {
		if got.Err != nil || got.Gone != (i == 2) {
			r.Errorf("raise %d: %+v", i, got)
		}
		if i != 2 {
			leases[i].Token = reqs[i].To
		}
		r.wantHeld(leases[i])
	}
	if n := len(r.raise()); n != 0 {
		r.Errorf("%d answers to no requests", n)
	}
}
