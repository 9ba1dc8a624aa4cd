package locktest

import (
	"errors"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

var sharedProperties = []property{
	{"members share one token, and no other owner gets the key", membersShare},
	{"a key is free once its last member has left", lastMemberFrees},
	{"a key is free once its last member has expired", lastMemberExpires},
	{"a member renews itself, and no other", membersRenewAlone},
	{"a member that has expired is not revived", membersStayDead},
	{"a member leaves alone, and once", membersLeaveAlone},
	{"a repeated request to share is answered as the first", shareIsIdempotent},
	{"a downgrade keeps the token and lets members in", downgradeKeeps},
	{"a downgrade of a lease that is gone is lost", downgradeLost},
	{"an intent refuses members, lets them in for a while, and ends", intentRefuses},
	{"intents for several keys let members in at the same time", intentsCoincide},
	{"all keys are granted together though one was shared and abandoned", shareAbandoned},
	{"a reader group is listed as one record", groupIsListed},
	{"a sweep ends reader groups without members", groupIsSwept},
	{"fences of two members pass side by side", membersFence},
	{"no other owner gets the key while a member's fence is open", memberFenceHolds},
	{"a member's fence passes after its end, and no longer than its reader group lasts", memberFenceOutlives},
	{"a member that is released in a transaction leaves with its commit", memberLeavesTx},
	{"a call that would share a key waits for its exclusive holder", sharesAwait},
	{"a call that would share a key does not wait for its readers", sharesDoNotAwaitReaders},
	{"a call that would share a key no longer waits for a holder that has downgraded", sharesDoNotAwaitDowngraded},
}

func (r *rig) sharer() lease.Sharer {
	r.Helper()
	s := able[lease.Sharer](r, r.here)
	if r.h.ExpireMember == nil || r.h.AgeIntents == nil {
		r.Skip("Harness.ExpireMember or AgeIntents is nil")
	}
	return s
}

// tryShare asks once to share key.
func (r *rig) tryShare(key string, owner lease.Owner) lease.Acquired {
	r.Helper()
	a, err := sole(r.sharer().Share(r.ctx, []lease.AcquireRequest{request(key, owner)}))
	if err != nil {
		r.Fatalf("share %q: %v", key, err)
	}
	return a
}

// share makes another member of key's reader group, which must be there.
func (r *rig) share(key string) lease.Lease {
	r.Helper()
	owner := lease.NewOwner()
	a := r.tryShare(key, owner)
	if !a.Granted || a.Token <= 0 {
		r.Fatalf("share %q: refused, though a reader group holds it: %+v", key, a)
	}
	return lease.Lease{Key: key, Owner: owner, Token: a.Token, Shared: true}
}

// group takes a key that must be free, and makes it a reader group of one.
func (r *rig) group(key string) lease.Lease {
	r.Helper()
	l := r.take(key)
	r.downgrade(l)
	l.Shared = true
	return l
}

func (r *rig) downgrade(l lease.Lease) {
	r.Helper()
	a, err := sole(r.sharer().Downgrade(r.ctx, []lease.RenewRequest{{Lease: l, TTL: ttl}}))
	if err != nil || a.Outcome != lease.Extended {
		r.Fatalf("downgrade %q: %+v, %v", l.Key, a, err)
	}
}

// wantGroup checks that no owner gets l's key alone, here or there.
func (r *rig) wantGroup(l lease.Lease) {
	r.Helper()
	for _, s := range []lease.Store{r.here, r.there()} {
		switch a := r.try(s, l.Key, lease.NewOwner()); {
		case a.Granted:
			r.Fatalf("%q was granted with token %d while members share it with token %d", l.Key, a.Token, l.Token)
		case !a.Holder.Shared || a.Holder.Remaining <= 0 || a.Holder.Remaining > ttl:
			r.Errorf("%q is shared, and its holder is told as %+v", l.Key, a.Holder)
		}
	}
}

func membersShare(r *rig) {
	r.sharer()
	if a := r.tryShare("k", lease.NewOwner()); a.Granted || !a.Possible {
		r.Errorf("share a free key: %+v, want Possible", a)
	}
	first := r.group("k")
	second, third := r.share("k"), r.share("k")
	if second.Token != first.Token || third.Token != first.Token {
		r.Errorf("members have the tokens %d, %d and %d", first.Token, second.Token, third.Token)
	}
	r.wantGroup(first)
	held := r.take("other")
	if a := r.tryShare("other", lease.NewOwner()); a.Granted || a.Possible || a.Holder.Shared {
		r.Errorf("share a key that is held: %+v", a)
	}
	r.wantHeld(held)
}

func lastMemberFrees(r *rig) {
	r.sharer()
	first, second := r.group("k"), r.share("k")
	r.wantRelease(first, false)
	r.wantGroup(second)
	r.wantRelease(second, false)
	next := r.takeAfter(first)
	r.wantHeld(next)
}

func lastMemberExpires(r *rig) {
	r.sharer()
	first, second := r.group("k"), r.share("k")
	r.h.ExpireMember(r.TB, r.here, "k", first.Owner)
	r.wantGroup(second)
	r.h.ExpireMember(r.TB, r.here, "k", second.Owner)
	if a := r.tryShare("k", lease.NewOwner()); a.Granted && a.Token != first.Token {
		r.Errorf("a member of a reader group with token %d has token %d", first.Token, a.Token)
	} else if a.Granted {
		return // it joined before the key was taken: no other owner was in between
	}
	r.wantHeld(r.takeAfter(first))
}

func membersRenewAlone(r *rig) {
	r.sharer()
	first, second := r.group("k"), r.share("k")
	r.h.ExpireMember(r.TB, r.here, "k", first.Owner)
	r.wantRenew(second, lease.Extended)
	r.wantRenew(first, lease.Lost)
	r.wantGroup(second)
	stranger := second
	stranger.Owner = lease.NewOwner()
	r.wantRenew(stranger, lease.Lost)
	other := second
	other.Token++
	r.wantRenew(other, lease.Lost)
}

func membersStayDead(r *rig) {
	r.sharer()
	l := r.group("k")
	r.h.ExpireMember(r.TB, r.here, "k", l.Owner)
	r.wantRenew(l, lease.Lost)
	next := r.takeAfter(l)
	r.wantRenew(l, lease.Lost)
	r.wantHeld(next)
}

func membersLeaveAlone(r *rig) {
	r.sharer()
	first, second := r.group("k"), r.share("k")
	unknown := first
	unknown.Token = 0
	r.wantRelease(unknown, false)
	r.wantRelease(first, true)
	r.wantRenew(first, lease.Lost)
	r.wantGroup(second)
	r.wantRenew(second, lease.Extended)
}

func shareIsIdempotent(r *rig) {
	r.sharer()
	first, second := r.group("k"), r.share("k")
	if a := r.tryShare("k", second.Owner); !a.Granted || a.Token != second.Token {
		r.Errorf("the second request: %+v", a)
	}
	r.wantRelease(second, false)
	r.wantRelease(first, false)
	r.takeAfter(first)
}

func downgradeKeeps(r *rig) {
	r.sharer()
	l := r.take("k")
	for range 2 {
		r.downgrade(l)
	}
	if other := r.share("k"); other.Token != l.Token {
		r.Errorf("token %d became %d", l.Token, other.Token)
	}
	r.wantRenew(l, lease.Lost)
	l.Shared = true
	r.wantRenew(l, lease.Extended)
	r.wantGroup(l)
}

func downgradeLost(r *rig) {
	s := r.sharer()
	l := r.take("k")
	r.expire("k")
	next := r.takeAfter(l)
	for _, gone := range []lease.Lease{l, {Key: "k", Owner: lease.NewOwner(), Token: next.Token}} {
		a, err := sole(s.Downgrade(r.ctx, []lease.RenewRequest{{Lease: gone, TTL: ttl}}))
		if err != nil || a.Outcome != lease.Lost {
			r.Errorf("downgrade with token %d: %+v, %v", gone.Token, a, err)
		}
	}
	r.wantHeld(next)
}

func shareAbandoned(r *rig) {
	r.sharer()
	all, ok := adapter.As[lease.AllAcquirer](r.here)
	if !ok {
		return
	}
	l := r.group("k")
	r.h.ExpireMember(r.TB, r.here, "k", l.Owner)
	reqs := []lease.AcquireRequest{request("a", lease.NewOwner()), request("k", lease.NewOwner())}
	got, err := all.AcquireAll(r.ctx, reqs)
	if errors.Is(err, lease.ErrUnsupported) {
		return
	}
	if err != nil || !got[0].Granted || !got[1].Granted || got[1].Token <= l.Token {
		r.Errorf("acquire all: %+v, %v", got, err)
	}
}

func groupIsListed(r *rig) {
	r.sharer()
	l := r.group("k")
	second := r.share("k")
	row, _ := r.row("k")
	if !row.Held || !row.Shared || row.Members != 2 || row.Token != l.Token || row.Intent ||
		row.Remaining <= 0 || row.Remaining > ttl {
		r.Errorf("a reader group of two is listed as %+v", row)
	}
	r.intent(lease.NewOwner(), ttl, "k")
	if row, _ := r.row("k"); !row.Intent {
		r.Errorf("a reader group that refuses members is listed as %+v", row)
	}
	r.h.ExpireMember(r.TB, r.here, "k", l.Owner)
	r.h.ExpireMember(r.TB, r.here, "k", second.Owner)
	if row, _ := r.row("k"); row.Held || row.Members != 0 {
		r.Errorf("a reader group of the dead is listed as %+v", row)
	}
	if rows := r.list(lease.Filter{Held: true}); len(rows) > 0 {
		r.Errorf("a reader group of the dead is listed among the held: %+v", rows)
	}
}

func groupIsSwept(r *rig) {
	r.sharer()
	s, ok := adapter.As[lease.Sweeper](r.here)
	if !ok {
		return
	}
	l := r.group("k")
	kept := r.group("kept")
	r.h.ExpireMember(r.TB, r.here, "k", l.Owner)
	for range 2 {
		if _, err := s.Sweep(r.ctx, lease.SweepOptions{Batch: 100}); err != nil {
			r.Fatal(err)
		}
	}
	if row, ok := r.row("k"); ok && row.Shared {
		r.Errorf("a reader group of the dead was left by a sweep: %+v", row)
	}
	r.wantGroup(kept)
	r.takeAfter(l)
}

func membersFence(r *rig) {
	r.sharer()
	r.fencer()
	if r.h.SerialTx {
		return
	}
	first, second := r.group("k"), r.share("k")
	one, other := r.begin(), r.begin()
	r.fence(one, first)
	r.fence(other, second)
	third := r.share("k") // and no fence is in the way of a member
	r.wantRenew(first, lease.Extended)
	r.wantRelease(third, false)
	r.commit(one)
	r.commit(other)
}

func memberFenceHolds(r *rig) {
	r.sharer()
	r.fencer()
	if r.h.SerialTx {
		return
	}
	l := r.group("k")
	tx := r.begin()
	r.fence(tx, l)
	r.wantRelease(l, false)
	for _, s := range []lease.Store{r.here, r.there()} {
		if a := r.try(s, "k", lease.NewOwner()); a.Granted {
			r.Fatal("a key was granted while the fence of its last member was open")
		}
	}
	r.commit(tx)
	r.takeAfter(l)
}

func memberFenceOutlives(r *rig) {
	r.sharer()
	r.fencer()
	first, second := r.group("k"), r.share("k")
	r.h.ExpireMember(r.TB, r.here, "k", first.Owner)
	tx := r.begin()
	r.fence(tx, first)
	r.commit(tx)
	r.wantRelease(second, false)
	r.wantFenced(first)
	r.takeAfter(first)
	r.wantFenced(first)
	r.wantFenced(second)
}

func memberLeavesTx(r *rig) {
	r.sharer()
	r.fencer()
	releaser, ok := adapter.As[lease.TxReleaser](r.here)
	if !ok {
		return
	}
	l, other := r.group("k"), r.share("k")
	for _, commit := range []bool{false, true} {
		tx := r.begin()
		if err := releaser.ReleaseTx(r.ctx, tx, l); err != nil {
			r.Fatal(err)
		}
		if commit {
			r.commit(tx)
		} else {
			r.rollback(tx)
			r.wantRenew(l, lease.Extended)
		}
	}
	r.wantRenew(l, lease.Lost)
	r.wantGroup(other)
	r.wantRelease(other, false)
	r.takeAfter(l)
}
