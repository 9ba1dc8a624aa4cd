package clustertest

import (
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

func refusedWithoutRecord(r *rig) {
	r.refused("k", 1, paxosbridge.Record{})
	r.refused("k", 7, paxosbridge.Record{})
	if got, err := r.here.Records(r.Context(), "", 10); err != nil || len(got) != 0 {
		r.Errorf("records are %+v, %v; want none", got, err)
	}
	r.open("k", 1)
	r.hold("k", 1)
}

func grantedInItsEpoch(r *rig) {
	r.open("k", 5)
	for _, epoch := range []int64{1, 3, 4, 6, 7, 1 << 20} {
		r.refused("k", epoch, paxosbridge.Record{Epoch: 5})
	}
	l := r.hold("k", 5)
	r.refused("k", 3, paxosbridge.Record{Epoch: 5})
	r.refused("k", 7, paxosbridge.Record{Epoch: 5})
	r.held("k", l)
	r.refused("another", 5, paxosbridge.Record{})
}

func repeatedRequest(r *rig) {
	r.open("k", 1)
	q := request("k", 1)
	first, second := r.ask(r.here, q), r.ask(r.there, q)
	if !first.Granted || !second.Granted || first.Token != second.Token {
		r.Errorf("answered %+v and then %+v", first, second)
	}
}

func openedAgain(r *rig) {
	r.open("k", 3)
	l := r.hold("k", 3)
	r.open("k", 3)
	r.must(r.there.Open(r.Context(), "k", 3))
	r.held("k", l)
	r.release(l)
	if again := r.hold("k", 3); again.Token <= l.Token {
		r.Errorf("token %d after %d", again.Token, l.Token)
	}
}

func olderEpoch(r *rig) {
	r.open("k", 5)
	l := r.hold("k", 5)
	r.open("k", 3)
	r.held("k", l)
	r.refused("k", 3, paxosbridge.Record{Epoch: 5})
}

func nextEpoch(r *rig) {
	var last lease.Token
	for epoch := int64(1); epoch < 12; epoch += 2 {
		r.open("k", epoch)
		for range 2 {
			l := r.hold("k", epoch)
			if l.Token <= last {
				r.Errorf("token %d after %d", l.Token, last)
			}
			last = l.Token
			r.release(l)
		}
		r.seal(r.hold("k", epoch), true)
		r.refused("k", epoch, paxosbridge.Record{Epoch: epoch, Sealed: true})
	}
}

func withoutEpoch(r *rig) {
	plain := r.ask(r.here, request("plain", 0))
	if !plain.Granted || lease.Epoch(plain.Token) != 0 {
		r.Errorf("a key without a record was answered %+v", plain)
	}
	r.open("k", 3)
	q := request("k", 0)
	a := r.ask(r.there, q)
	if !a.Granted || lease.Epoch(a.Token) != 3 {
		r.Fatalf("a key in epoch 3 was answered %+v", a)
	}
	r.seal(lease.Lease{Key: "k", Owner: q.Owner, Token: a.Token}, true)
	r.refused("k", 0, paxosbridge.Record{Epoch: 3, Sealed: true})
}
