package locktest

import (
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

var batchProperties = []property{
	{"a batch of acquires is answered in the order of the requests", acquireInOrder},
	{"of a key asked for by several owners in one batch one gets it", duplicateKeys},
	{"a key asked for twice by one owner in a batch is one lease", duplicateRequests},
	{"1200 leases are renewed in one batch, answered in order", renewInOrder},
	{"a batch of releases is answered in the order of the leases", releaseInOrder},
	{"an empty batch is answered with nothing", emptyBatch},
}

// acquireInOrder asks in another order than that of the keys, in which databases tend to answer.
func acquireInOrder(r *rig) {
	held := map[string]lease.Lease{"c": r.take("c"), "f": r.take("f")}
	old := r.take("e")
	r.expire("e")
	keys := []string{"f", "a", "c", "g", "b", "e", "d"}
	leases, refused := r.takeAll(keys...)
	for i, key := range keys {
		if _, busy := held[key]; refused[i] != busy {
			r.Errorf("%q: refused %t, want %t", key, refused[i], busy)
		}
	}
	for i, l := range leases {
		if h, busy := held[keys[i]]; busy {
			l = h
		}
		r.wantHeld(l)
	}
	r.wantAbove(leases[5], old)
}

func duplicateKeys(r *rig) {
	keys := []string{"k", "other", "k", "k"}
	for range 2 { // first without row, then over a free one
		leases, refused := r.takeAll(keys...)
		var winners []lease.Lease
		for i, l := range leases {
			if keys[i] == "k" && !refused[i] {
				winners = append(winners, l)
			}
		}
		if len(winners) != 1 || refused[1] {
			r.Fatalf("%d of 3 owners were granted the same key; the other key was refused: %t", len(winners), refused[1])
		}
		r.wantHeld(winners[0])
		r.wantRelease(winners[0], false)
		r.wantRelease(leases[1], false)
	}
}

func duplicateRequests(r *rig) {
	q := request("k", lease.NewOwner())
	answers := r.acquireAll([]lease.AcquireRequest{q, request("other", lease.NewOwner()), q})
	first, second := answers[0], answers[2]
	if !first.Granted || !second.Granted || first.Token != second.Token {
		r.Fatalf("one owner asked for a key twice in a batch and got %+v and %+v", first, second)
	}
	r.wantHeld(lease.Lease{Key: "k", Owner: q.Owner, Token: first.Token})
}

func renewInOrder(r *rig) {
	n := r.h.most(1200)
	keys := make([]string, n)
	for i := range keys {
		// Every key once, out of order, because n is no multiple of this prime.
		keys[i] = fmt.Sprintf("k%04d", (i*7919)%n)
	}
	leases, refused := r.takeAll(keys...)
	want := make([]lease.RenewOutcome, n)
	for i := range leases {
		if refused[i] {
			r.Fatalf("%q: refused, though it is free", keys[i])
		}
		want[i] = r.spoil(&leases[i], i)
	}
	for i, got := range r.renewAll(leases...) {
		if got != want[i] {
			r.Fatalf("renewal %d of %q: %v, want %v", i, keys[i], got, want[i])
		}
	}
}

// spoil makes one lease in ten a lost one, in three ways.
func (r *rig) spoil(l *lease.Lease, i int) lease.RenewOutcome {
	switch i % 30 {
	case 3:
		l.Owner = lease.NewOwner()
	case 13:
		l.Token++
	case 23:
		l.Key = "no such " + l.Key
	default:
		return lease.Extended
	}
	return lease.Lost
}

func releaseInOrder(r *rig) {
	leases, _ := r.takeAll("d", "a", "c", "b", "e")
	r.wantRelease(leases[2], false)
	leases[3].Token++
	unknown := lease.Lease{Key: "aa", Owner: lease.NewOwner(), Token: 1}
	want := []bool{false, false, true, true, false, true}
	got, err := r.here.Release(r.ctx, append(leases, unknown))
	if err != nil || len(got) != len(want) {
		r.Fatalf("release: %d answers to %d leases, %v", len(got), len(want), err)
	}
	for i := range got {
		if got[i].Err != nil || got[i].Gone != want[i] {
			r.Errorf("release %d: %+v, want gone %t", i, got[i], want[i])
		}
	}
}

func emptyBatch(r *rig) {
	acquired, err1 := r.here.Acquire(r.ctx, nil)
	renewed, err2 := r.here.Renew(r.ctx, nil)
	released, err3 := r.here.Release(r.ctx, nil)
	if n := len(acquired) + len(renewed) + len(released); n != 0 {
		r.Errorf("%d answers to no requests", n)
	}
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			r.Error(err)
		}
	}
}

// takeAll asks for all keys in one batch, for a new owner each.
func (r *rig) takeAll(keys ...string) (leases []lease.Lease, refused []bool) {
	r.Helper()
	reqs := make([]lease.AcquireRequest, len(keys))
	for i, key := range keys {
		reqs[i] = request(key, lease.NewOwner())
	}
	for i, a := range r.acquireAll(reqs) {
		leases = append(leases, lease.Lease{Key: keys[i], Owner: reqs[i].Owner, Token: a.Token})
		refused = append(refused, !a.Granted)
	}
	return leases, refused
}

func (r *rig) acquireAll(reqs []lease.AcquireRequest) []lease.Acquired {
	r.Helper()
	answers, err := r.here.Acquire(r.ctx, reqs)
	if err != nil || len(answers) != len(reqs) {
		r.Fatalf("acquire: %d answers to %d requests, %v", len(answers), len(reqs), err)
	}
	for i, a := range answers {
		if a.Err != nil {
			r.Fatalf("acquire %q: %v", reqs[i].Key, a.Err)
		}
	}
	return answers
}

// renewAll renews in one batch and asks again for busy leases, as a client would.
func (r *rig) renewAll(leases ...lease.Lease) []lease.RenewOutcome {
	r.Helper()
	outcomes := make([]lease.RenewOutcome, len(leases))
	pending := make([]int, len(leases))
	for i := range pending {
		pending[i] = i
	}
	r.eventually("renewals that are not busy", func() bool {
		pending = r.renewSome(leases, pending, outcomes)
		return len(pending) == 0
	})
	return outcomes
}

// renewSome renews the leases at the given places and returns the places of the busy ones.
func (r *rig) renewSome(leases []lease.Lease, places []int, outcomes []lease.RenewOutcome) (busy []int) {
	r.Helper()
	reqs := make([]lease.RenewRequest, len(places))
	for i, at := range places {
		reqs[i] = lease.RenewRequest{Lease: leases[at], TTL: ttl}
	}
	answers, err := r.here.Renew(r.ctx, reqs)
	if err != nil || len(answers) != len(reqs) {
		r.Fatalf("renew: %d answers to %d requests, %v", len(answers), len(reqs), err)
	}
	for i, a := range answers {
		if a.Err != nil {
			r.Fatalf("renew %q: %v", reqs[i].Key, a.Err)
		}
		outcomes[places[i]] = a.Outcome
		if a.Outcome == lease.Busy {
			busy = append(busy, places[i])
		}
	}
	return busy
}
