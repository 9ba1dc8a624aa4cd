package clustertest

import (
	"errors"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// rig is two clients of one cluster.
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
	return lease.AcquireRequest{
		Key: key, Owner: lease.NewOwner(), TTL: 10 * time.Minute, Note: "clustertest", Epoch: epoch,
	}
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

// hold acquires key in epoch.
func (r *rig) hold(key string, epoch int64) lease.Lease {
	r.Helper()
	q := request(key, epoch)
	a := r.ask(r.here, q)
	if !a.Granted || lease.Epoch(a.Token) != epoch {
		r.Fatalf("%q in epoch %d was answered %+v", key, epoch, a)
	}
	return lease.Lease{Key: key, Owner: q.Owner, Token: a.Token}
}

// refused requests key in epoch and wants to be refused with the record.
func (r *rig) refused(key string, epoch int64, want paxosbridge.Record) {
	r.Helper()
	a := r.ask(r.there, request(key, epoch))
	want.Key = key
	var got *paxosbridge.RecordError
	if !errors.As(a.Err, &got) || got.Record != want || got.Asked != epoch ||
		!errors.Is(a.Err, paxosbridge.ErrRecord) {
		r.Errorf("%q in epoch %d was answered %+v; want a refusal with %+v", key, epoch, a, want)
	}
}

func (r *rig) held(key string, by lease.Lease) {
	r.Helper()
	if a := r.ask(r.there, request(key, lease.Epoch(by.Token))); a.Granted || a.Err != nil {
		r.Errorf("a request for the held key %q was answered %+v", key, a)
	}
	if renewed := r.renew(by); renewed.Outcome != lease.Extended {
		r.Errorf("the renewal of %q was answered %+v", key, renewed)
	}
}

func (r *rig) renew(l lease.Lease) lease.Renewed {
	r.Helper()
	answers, err := r.there.Renew(
		r.Context(), []lease.RenewRequest{{Lease: l, TTL: 10 * time.Minute}},
	)
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

// lost wants a lease to be lost.
func (r *rig) lost(l lease.Lease) {
	r.Helper()
	if got := r.renew(l); got.Outcome != lease.Lost {
		r.Errorf("the renewal of a lost lease was answered %+v", got)
	}
	if !r.release(l).Gone {
		r.Error("the release of a lost lease found it")
	}
}
