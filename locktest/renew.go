package locktest

import (
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var renewProperties = []property{
	{"a renewal extends the lease", renewFor(20*ttl, 30*ttl)},
	{"a renewal can shorten the lease", renewFor(30*ttl, 20*ttl)},
	{"renewals in quick succession are all extended", renewQuickly},
	{"a late renewal does not revive an expired lease", lateRenewal},
	{"a late renewal does not revive a released lease", renewReleased},
	{"a renewal never creates a row", renewMissing},
	{"a renewal never takes the key from a successor", renewSucceeded},
	{"a renewal with another token is lost", renewOtherToken},
	{"a renewal by another owner is lost", renewOtherOwner},
}

func renewFor(first, next time.Duration) func(r *rig) {
	return func(r *rig) {
		l := r.takeFor("k", first)
		got, err := sole(r.there().Renew(r.ctx, []lease.RenewRequest{{Lease: l, TTL: next}}))
		if err != nil || got.Outcome != lease.Extended {
			r.Fatalf("renew: %+v, %v", got, err)
		}
		row, _ := r.row("k")
		if row.Remaining <= next-5*ttl || row.Remaining > next {
			r.Errorf("%v remain after a lease of %v was renewed for %v", row.Remaining, first, next)
		}
		if row.Lease != l {
			r.Errorf("a renewal changed %+v to %+v", l, row.Lease)
		}
	}
}

// renewQuickly is for databases that count changed rows instead of matched ones: a renewal that
// writes the values that are there must not look lost.
func renewQuickly(r *rig) {
	l := r.take("k")
	for range 50 {
		r.wantRenew(l, lease.Extended)
	}
}

func lateRenewal(r *rig) {
	old := r.take("k")
	r.expire("k")
	for range 3 {
		r.wantRenew(old, lease.Lost)
	}
	if row, ok := r.row("k"); ok && row.Held {
		r.Errorf("an expired lease is held after a late renewal: %+v", row)
	}
	next := r.takeAfter(old)
	r.wantHeld(next)
}

func renewReleased(r *rig) {
	old := r.take("k")
	r.wantRelease(old, false)
	r.wantRenew(old, lease.Lost)
	r.wantHeld(r.takeAfter(old))
}

// renewMissing is an upsert for both acquire and renew (openbao#2097).
func renewMissing(r *rig) {
	never := lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: 1}
	r.wantRenew(never, lease.Lost)
	if row, ok := r.row("k"); ok {
		r.Errorf("a renewal of a key without row left %+v", row)
	}
	r.wantHeld(r.take("k"))
}

// renewSucceeded is a late renewal that takes the key back (openbao#2100).
func renewSucceeded(r *rig) {
	first := r.take("k")
	r.expire("k")
	second := r.takeAfter(first)
	r.wantRenew(first, lease.Lost)
	r.wantHeld(second)
	r.wantRelease(second, false)
	third := r.takeAfter(second)
	r.wantRenew(first, lease.Lost)
	r.wantRenew(second, lease.Lost)
	r.wantHeld(third)
}

func renewOtherToken(r *rig) {
	l := r.take("k")
	for _, token := range []lease.Token{l.Token + 1, l.Token - 1, 0, -l.Token} {
		other := l
		other.Token = token
		r.wantLost(other)
	}
	r.wantHeld(l)
}

func renewOtherOwner(r *rig) {
	l := r.take("k")
	other := l
	other.Owner = lease.NewOwner()
	r.wantLost(other)
	other.Owner = lease.Owner{}
	r.wantLost(other)
	r.wantHeld(l)
}

// wantLost also sees that the renewal has extended nothing, whatever it was answered.
func (r *rig) wantLost(l lease.Lease) {
	r.Helper()
	before, _ := r.row(l.Key)
	got, err := sole(r.here.Renew(r.ctx, []lease.RenewRequest{{Lease: l, TTL: 30 * ttl}}))
	if err != nil || got.Outcome != lease.Lost {
		r.Errorf("renew %q with token %d: %+v, %v, want it lost", l.Key, l.Token, got, err)
	}
	if row, _ := r.row(l.Key); row.Remaining > before.Remaining {
		r.Errorf("a renewal that was lost has extended %+v to %v", before, row.Remaining)
	}
}
