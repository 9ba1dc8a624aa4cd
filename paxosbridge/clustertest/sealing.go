package clustertest

import (
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

func sealed(r *rig) {
	r.open("k", 1)
	l := r.hold("k", 1)
	r.seal(l, true)
	r.refused("k", 1, paxosbridge.Record{Epoch: 1, Sealed: true})
	r.refused("k", 3, paxosbridge.Record{Epoch: 1, Sealed: true})
	r.lost(l)
	r.refused("k", 1, paxosbridge.Record{Epoch: 1, Sealed: true})
}

func sealedByOthers(r *rig) {
	r.open("k", 3)
	l := r.hold("k", 3)
	for _, other := range []lease.Lease{
		{Key: "k", Owner: lease.NewOwner(), Token: l.Token},
		{Key: "k", Owner: l.Owner, Token: l.Token - 1},
		{Key: "k", Owner: l.Owner, Token: l.Token + 1},
		{Key: "k", Owner: l.Owner, Token: l.Token - 2<<lease.EpochShift},
		{Key: "k", Owner: l.Owner, Token: l.Token + 2<<lease.EpochShift},
		{Key: "absent", Owner: l.Owner, Token: l.Token},
	} {
		r.seal(other, false)
	}
	r.held("k", l)
	r.release(l)
	r.seal(l, false)
	r.hold("k", 3)
}

func sealedTooLate(r *rig) {
	r.open("k", 1)
	l := r.hold("k", 1)
	r.h.Expire(r.TB, r.here, "k")
	next := r.hold("k", 1)
	r.seal(l, false)
	r.held("k", next)
}

func lateOpen(r *rig) {
	r.open("k", 1)
	r.seal(r.hold("k", 1), true)
	for range 2 {
		r.must(r.there.Open(r.Context(), "k", 1))
		r.refused("k", 1, paxosbridge.Record{Epoch: 1, Sealed: true})
	}
}

func handOver(r *rig) {
	r.open("k", 1)
	l := r.hold("k", 1)
	to := request("k", 1)
	give := func(from lease.Lease, to lease.AcquireRequest) lease.Acquired {
		r.Helper()
		answers, err := r.there.HandOver(r.Context(), []lease.HandOver{{From: from, To: to}})
		r.must(err)
		return answers[0]
	}
	a := give(l, to)
	if !a.Granted || a.Token <= l.Token || lease.Epoch(a.Token) != 1 {
		r.Fatalf("answered %+v after token %d", a, l.Token)
	}
	next := lease.Lease{Key: "k", Owner: to.Owner, Token: a.Token}
	r.lost(l)
	r.held("k", next)
	r.seal(next, true)
	if a := give(next, request("k", 1)); a.Granted {
		r.Errorf("a sealed epoch was handed over: %+v", a)
	}
	r.refused("k", 1, paxosbridge.Record{Epoch: 1, Sealed: true})
}

func supersede(r *rig) {
	ctx := r.Context()
	r.must(r.here.Supersede(ctx, "absent", 3))
	r.refused("absent", 3, paxosbridge.Record{Epoch: 3, Sealed: true})
	r.open("absent", 3)
	r.refused("absent", 3, paxosbridge.Record{Epoch: 3, Sealed: true})
	r.open("k", 1)
	l := r.hold("k", 1)
	r.must(r.there.Supersede(ctx, "k", 1))
	r.held("k", l)
	r.must(r.there.Supersede(ctx, "k", 2))
	r.lost(l)
	r.seal(l, false)
	r.refused("k", 1, paxosbridge.Record{Epoch: 2, Sealed: true})
	r.open("k", 3)
	next := r.hold("k", 3)
	r.must(r.here.Supersede(ctx, "k", 2))
	r.held("k", next)
}
