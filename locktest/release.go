package locktest

import "github.com/rowlockdb/rowlock/lease"

var releaseProperties = []property{
	{"a released key is granted with a higher token", releaseFrees},
	{"a second release says gone", releaseTwice},
	{"token 0 releases whatever the owner was given", releaseByOwner},
	{"a release of an unknown key says gone", releaseUnknown},
	{"a late release does not free the successor", lateRelease},
	{"a late release does not free a later term of the same owner", lateReleaseSameOwner},
	{"a release by another owner frees nothing", releaseOtherOwner},
	{"a released row keeps its token", releaseKeepsRow},
	{"an expired lease can be released", releaseExpired},
}

func releaseFrees(r *rig) {
	l := r.take("k")
	for range 3 {
		r.wantRelease(l, false)
		l = r.takeAfter(l)
		r.wantHeld(l)
	}
}

func releaseTwice(r *rig) {
	l := r.take("k")
	r.wantRelease(l, false)
	r.wantRelease(l, true)
	l.Token = 0
	r.wantRelease(l, true)
}

// releaseByOwner is for an attempt whose reply was lost before it learned its token.
func releaseByOwner(r *rig) {
	l := r.take("k")
	byOwner := lease.Lease{Key: "k", Owner: l.Owner}
	r.wantRelease(byOwner, false)
	r.wantRelease(byOwner, true)
	r.takeAfter(l)
}

func releaseUnknown(r *rig) {
	l := lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: 1}
	r.wantRelease(l, true)
	l.Token = 0
	r.wantRelease(l, true)
	if row, ok := r.row("k"); ok {
		r.Errorf("a release of a key without row left %+v", row)
	}
}

func lateRelease(r *rig) {
	first := r.take("k")
	r.expire("k")
	second := r.takeAfter(first)
	r.wantRelease(first, true)
	r.wantRelease(lease.Lease{Key: "k", Owner: first.Owner}, true)
	r.wantHeld(second)
}

// lateReleaseSameOwner: the owner alone does not name the term.
func lateReleaseSameOwner(r *rig) {
	first := r.take("k")
	r.expire("k")
	second := r.takeAs("k", first.Owner)
	r.wantRelease(first, true)
	second.Token++
	r.wantRelease(second, true)
	second.Token--
	r.wantHeld(second)
}

func releaseOtherOwner(r *rig) {
	l := r.take("k")
	for _, owner := range []lease.Owner{lease.NewOwner(), {}} {
		r.wantRelease(lease.Lease{Key: "k", Owner: owner, Token: l.Token}, true)
		r.wantRelease(lease.Lease{Key: "k", Owner: owner}, true)
	}
	r.wantHeld(l)
}

func releaseKeepsRow(r *rig) {
	l := r.take("k")
	r.wantRelease(l, false)
	row, ok := r.row("k")
	if !ok {
		r.Fatal("the row is gone")
	}
	if row.Token != l.Token || row.Held || row.Remaining > tolerance {
		r.Errorf("the released row is %+v, want token %d and not held", row, l.Token)
	}
}

// releaseExpired leaves open whether an expired lease that was not taken over counts as gone.
func releaseExpired(r *rig) {
	l := r.take("k")
	r.expire("k")
	if _, err := releaseOne(r.ctx, r.here, l); err != nil {
		r.Fatalf("release of an expired lease: %v", err)
	}
	r.wantRenew(l, lease.Lost)
	r.wantHeld(r.takeAfter(l))
}
