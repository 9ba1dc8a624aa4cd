// Package clustertest is the conformance suite that every paxosbridge.Cluster must pass beside locktest: what opening and sealing mean,
// which request is refused in which epoch, and that no late call brings back what is over.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Harness tells the suite how to get hold of a cluster. Hooks are called from the test's own goroutine.
type Harness struct {
	// Open returns a cluster without records. It is called once per property. What needs closing is closed with tb.Cleanup.
	Open func(tb testing.TB) paxosbridge.Cluster
	// Another returns a second client of the same records, as another process would have. nil means that the first is used.
	Another func(tb testing.TB, c paxosbridge.Cluster) paxosbridge.Cluster
	// Expire ends key's lease in the cluster, as if its TTL had passed.
	Expire func(tb testing.TB, c paxosbridge.Cluster, key string)
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			r := &rig{TB: t, h: h, here: h.Open(t)}
			r.there = r.here
			if h.Another != nil {
				r.there = h.Another(t, r.here)
			}
			p.prove(r)
		})
	}
}

type property struct {
	name  string
	prove func(*rig)
}

var properties = []property{
	{"a key without a record is refused in every epoch, and gets none by it", refusedWithoutRecord},
	{"an open record is granted in its epoch only", grantedInItsEpoch},
	{"a repeated request in an epoch returns the same lease", repeatedRequest},
	{"an epoch that is opened again keeps its holder and its tokens", openedAgain},
	{"an older epoch is not opened", olderEpoch},
	{"the holder seals, and nobody is granted anything after", sealed},
	{"who does not hold the key does not seal it", sealedByOthers},
	{"a holder whose lease was taken does not seal", sealedTooLate},
	{"a sealed epoch is not opened by a late call", lateOpen},
	{"the next epoch opens above a sealed one, and tokens grow", nextEpoch},
	{"a hand-over stays within its epoch", handOver},
	{"superseding seals what is older, held or not, and nothing newer", supersede},
	{"a request without an epoch goes by the record", withoutEpoch},
	{"records are listed in key order, page by page", records},
	{"the probe answers", probe},
	{"whoever moves the key, one holds it at a time and tokens grow", race},
}

// rig is what a property has: two clients of one cluster.
type rig struct {
	testing.TB
	h           Harness
	here, there paxosbridge.Cluster
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) open(key string, epoch int64) {
	r.Helper()
	r.must(r.here.Open(r.Context(), key, epoch))
}

func request(key string, epoch int64) lease.AcquireRequest {
	return lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: 10 * time.Minute, Note: "clustertest", Epoch: epoch}
}

func (r *rig) ask(c paxosbridge.Cluster, q lease.AcquireRequest) lease.Acquired {
	r.Helper()
	answers, err := c.Acquire(r.Context(), []lease.AcquireRequest{q})
	r.must(err)
	if len(answers) != 1 {
		r.Fatalf("%d answers to one request", len(answers))
	}
	return answers[0]
}

// hold gets key in epoch.
func (r *rig) hold(key string, epoch int64) lease.Lease {
	r.Helper()
	q := request(key, epoch)
	a := r.ask(r.here, q)
	if !a.Granted || lease.Epoch(a.Token) != epoch {
		r.Fatalf("%q in epoch %d was answered %+v", key, epoch, a)
	}
	return lease.Lease{Key: key, Owner: q.Owner, Token: a.Token}
}

// refused asks for key in epoch and wants to be told of the record.
func (r *rig) refused(key string, epoch int64, want paxosbridge.Record) {
	r.Helper()
	a := r.ask(r.there, request(key, epoch))
	want.Key = key
	var got *paxosbridge.RecordError
	if !errors.As(a.Err, &got) || got.Record != want || got.Asked != epoch || !errors.Is(a.Err, paxosbridge.ErrRecord) {
		r.Errorf("%q in epoch %d was answered %+v; want to be refused because of %+v", key, epoch, a, want)
	}
}

func (r *rig) held(key string, by lease.Lease) {
	r.Helper()
	if a := r.ask(r.there, request(key, lease.Epoch(by.Token))); a.Granted || a.Err != nil {
		r.Errorf("%q, which is held, was answered %+v", key, a)
	}
	if renewed := r.renew(by); renewed.Outcome != lease.Extended {
		r.Errorf("the lease of %q was answered %+v", key, renewed)
	}
}

func (r *rig) renew(l lease.Lease) lease.Renewed {
	r.Helper()
	answers, err := r.there.Renew(r.Context(), []lease.RenewRequest{{Lease: l, TTL: 10 * time.Minute}})
	r.must(err)
	r.must(answers[0].Err)
	return answers[0]
}

func (r *rig) release(l lease.Lease) lease.Released {
	r.Helper()
	answers, err := r.there.Release(r.Context(), []lease.Lease{l})
	r.must(err)
	r.must(answers[0].Err)
	return answers[0]
}

func (r *rig) seal(l lease.Lease, want bool) {
	r.Helper()
	ok, err := r.there.Seal(r.Context(), l)
	r.must(err)
	if ok != want {
		r.Errorf("seal %+v was answered %t, want %t", l, ok, want)
	}
}

// lost wants a lease to be worth nothing any more.
func (r *rig) lost(l lease.Lease) {
	r.Helper()
	if got := r.renew(l); got.Outcome != lease.Lost {
		r.Errorf("a lease that is over was answered %+v", got)
	}
	if !r.release(l).Gone {
		r.Error("a lease that is over was there to be released")
	}
}

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

func nextEpoch(r *rig) {
	var last int64
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

func records(r *rig) {
	keys := []string{"A", "a", "a ", "a\x00", "b", "\xff"}
	for i, key := range keys {
		r.open(key, int64(2*i+1))
	}
	r.seal(r.hold("a ", 5), true)
	want := map[string]paxosbridge.Record{}
	for i, key := range keys {
		want[key] = paxosbridge.Record{Key: key, Epoch: int64(2*i + 1), Sealed: key == "a "}
	}
	after, seen := "", 0
	for {
		page, err := r.there.Records(r.Context(), after, 2)
		r.must(err)
		for _, got := range page {
			if got != want[got.Key] || got.Key <= after {
				r.Errorf("after %q came %+v, want %+v", after, got, want[got.Key])
			}
			after = got.Key
			seen++
		}
		if len(page) < 2 {
			break
		}
	}
	if seen != len(keys) {
		r.Errorf("%d records were listed, want %d", seen, len(keys))
	}
}

func probe(r *rig) {
	r.must(r.here.Probe(r.Context()))
	if got, err := r.here.Records(r.Context(), "", 10); err != nil || len(got) != 0 {
		r.Errorf("records are %+v, %v: the probe's own is not to be seen", got, err)
	}
}

// race has workers lock, seal and open one key as they like. Each grant is checked beside those before it: tokens grow, and nobody is
// granted what another has.
func race(r *rig) {
	const workers, rounds = 6, 30
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var last int64
	holders, seals, epoch := 0, 0, int64(1)
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	r.open("k", 1)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			c := r.here
			if w%2 == 1 {
				c = r.there
			}
			for n := 0; n < rounds && ctx.Err() == nil; {
				mu.Lock()
				at := epoch
				mu.Unlock()
				q := request("k", at)
				answers, err := c.Acquire(ctx, []lease.AcquireRequest{q})
				if err != nil || answers[0].Err != nil && !errors.Is(answers[0].Err, paxosbridge.ErrRecord) {
					mu.Lock()
					fault("acquire: %v %+v", err, answers)
					mu.Unlock()
					return
				}
				if !answers[0].Granted {
					time.Sleep(rand.N(time.Millisecond)) // it is not this sleep that anything depends on
					continue
				}
				n++
				l := lease.Lease{Key: "k", Owner: q.Owner, Token: answers[0].Token}
				mu.Lock()
				if holders++; holders > 1 || l.Token <= last {
					fault("token %d was granted after %d, with %d holders", l.Token, last, holders)
				}
				last = l.Token
				holders--
				mu.Unlock()
				if n%3 == 0 {
					ok, err := c.Seal(ctx, l)
					if err != nil || !ok {
						mu.Lock()
						fault("the holder could not seal: %t, %v", ok, err)
						mu.Unlock()
						return
					}
					mu.Lock()
					seals++
					epoch = max(epoch, at+2)
					mu.Unlock()
					if err := c.Open(ctx, "k", at+2); err != nil {
						mu.Lock()
						fault("open: %v", err)
						mu.Unlock()
					}
					continue
				}
				if _, err := c.Release(ctx, []lease.Lease{l}); err != nil {
					mu.Lock()
					fault("release: %v", err)
					mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
	for _, f := range faults {
		r.Error(f)
	}
	if want := workers * rounds / 3; seals != want {
		r.Errorf("%d epochs were sealed, want %d", seals, want)
	}
}
