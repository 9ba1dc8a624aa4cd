package locktest

import (
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

var sharedBatchProperties = []property{
	{"a batch of leaves tells each its own", membersLeaveTogether},
	{"a batch of requests to share tells each its own", membersJoinTogether},
	{"a repeated request to share passes an intent, and extends the member", shareRepeatedBehindIntent},
}

func membersLeaveTogether(r *rig) {
	r.sharer()
	stays, first, gone, last := r.group("k"), r.share("k"), r.share("k"), r.share("k")
	other := r.group("other")
	r.wantRelease(gone, false)
	never := lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: stays.Token, Shared: true}
	batch := []lease.Lease{first, gone, other, never, last}
	got, err := r.here.Release(r.ctx, batch)
	if err != nil || len(got) != len(batch) {
		r.Fatalf("release %d members: %d answers, %v", len(batch), len(got), err)
	}
	for i, want := range []bool{false, true, false, true, false} {
		if got[i].Err != nil || got[i].Gone != want {
			r.Errorf("release %d of a batch: %+v, want gone %t", i, got[i], want)
		}
	}
	for _, l := range []lease.Lease{first, other, last} {
		r.wantRenew(l, lease.Lost)
	}
	r.wantRenew(stays, lease.Extended)
	r.wantGroup(stays)
	r.takeAfter(other)
}

// shareAll asks once for several members.
func (r *rig) shareAll(reqs ...lease.AcquireRequest) []lease.Acquired {
	r.Helper()
	got, err := r.sharer().Share(r.ctx, reqs)
	if err != nil || len(got) != len(reqs) {
		r.Fatalf("share %d keys: %d answers, %v", len(reqs), len(got), err)
	}
	return got
}

func membersJoinTogether(r *rig) {
	r.sharer()
	k, other := r.group("k"), r.group("other")
	known := r.share("k")
	r.take("held")
	reqs := requests("k", "k", "other", "held", "free")
	reqs = append(reqs, request("k", known.Owner))
	for i, a := range r.shareAll(reqs...) {
		want := map[string]lease.Token{"k": k.Token, "other": other.Token}[reqs[i].Key]
		if a.Err != nil || a.Granted != (want > 0) || a.Token != want || a.Possible != (reqs[i].Key == "free") {
			r.Errorf("share %q in a batch: %+v, want token %d", reqs[i].Key, a, want)
		}
		if a.Granted {
			r.wantRenew(lease.Lease{Key: reqs[i].Key, Owner: reqs[i].Owner, Token: a.Token, Shared: true}, lease.Extended)
		}
	}
}

// shareRepeatedBehindIntent repeats a request whose answer may have been lost. That the expiry
// moves says that the answer is that of a write, whose commit was acknowledged, and not of a read.
func shareRepeatedBehindIntent(r *rig) {
	r.sharer()
	k, other := r.group("k"), r.group("other")
	known, alone := lease.NewOwner(), lease.NewOwner()
	r.shareAll(request("k", known), request("k", alone), request("other", known))
	r.intent(lease.NewOwner(), ttl, "k")
	long := func(key string, owner lease.Owner) lease.AcquireRequest {
		q := request(key, owner)
		q.TTL += ttl
		return q
	}
	want := []lease.Token{k.Token, other.Token, 0}
	for i, a := range r.shareAll(long("k", known), long("other", known), long("k", lease.NewOwner())) {
		if a.Granted != (want[i] > 0) || a.Token != want[i] {
			r.Errorf("request %d behind an intent: %+v, want token %d", i, a, want[i])
		}
	}
	r.wantExtended("k", ttl)
	r.wantExtended("other", ttl)
	q := request("k", alone)
	q.TTL += 2 * ttl
	if a := r.shareAll(q)[0]; !a.Granted || a.Token != k.Token {
		r.Errorf("a member that asks alone behind an intent: %+v", a)
	}
	r.wantExtended("k", 2*ttl)
}

// wantExtended checks that a member of key's reader group lives for longer than d.
func (r *rig) wantExtended(key string, d time.Duration) {
	r.Helper()
	if row, _ := r.row(key); row.Remaining <= d {
		r.Errorf("a request that was repeated has not extended the member: %q has %s left", key, row.Remaining)
	}
}
