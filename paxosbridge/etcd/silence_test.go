package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// mute never answers requests of a kind, and counts them.
type mute struct {
	method atomic.Value
	asked  atomic.Int64
}

func (m *mute) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			if of, _ := m.method.Load().(string); of != "" && strings.HasSuffix(method, of) {
				m.asked.Add(1)
				<-ctx.Done()
				return ctx.Err()
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		},
	)
}

// A client releases many attempts in one call, and Timeout bounds the call.
func TestManyReleasesWaitForASilentClusterOnce(t *testing.T) {
	var m mute
	client := dial(t, m.option())
	c := join(t, client, fresh(t, client), etcd.Timeout(200*time.Millisecond))
	leases := []lease.Lease{{Key: "known", Owner: lease.NewOwner(), Token: 1}}
	for i := range 20 {
		leases = append(leases, lease.Lease{Key: fmt.Sprint(i), Owner: lease.NewOwner()})
	}
	m.method.Store("/Txn")
	answers, err := c.Release(t.Context(), leases)
	if err != nil || len(answers) != len(leases) {
		t.Fatal(answers, err)
	}
	for i, a := range answers {
		if !errors.Is(a.Err, lease.ErrBusy) || a.Gone {
			t.Errorf("%d: %+v", i, a)
		}
	}
	if n := m.asked.Load(); n > 5 {
		t.Errorf("asked %d times, want the tries of one lease", n)
	}
}

// Timeout and its shares are bounds of the cluster's.
func TestASilentClusterIsNoDeadlineOfTheCaller(t *testing.T) {
	var m mute
	client := dial(t, m.option())
	c := join(t, client, fresh(t, client), etcd.Timeout(200*time.Millisecond))
	m.method.Store("/Txn")
	for what, err := range map[string]error{
		"open":  c.Open(t.Context(), "k", 1),
		"probe": c.Probe(t.Context()),
	} {
		if err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// What is left of a lease takes a request each, and only people read it.
func TestInspectShowsLeasesWhoseRestIsUnknown(t *testing.T) {
	var m mute
	client := dial(t, m.option())
	prefix := fresh(t, client)
	c := join(t, client, prefix)
	for i := range 40 {
		// Each has a lease of its own.
		q := lease.AcquireRequest{
			Key: fmt.Sprint(i), Owner: lease.NewOwner(), TTL: time.Duration(1+i) * time.Minute,
		}
		if _, err := c.Acquire(t.Context(), []lease.AcquireRequest{q}); err != nil {
			t.Fatal(err)
		}
	}
	const timeout = 400 * time.Millisecond
	other := join(t, client, prefix, etcd.Timeout(timeout))
	m.method.Store("/LeaseTimeToLive")
	records, err := other.Inspect(t.Context(), lease.Filter{})
	for began := time.Now(); err != nil && time.Since(began) < patience; { // on a busy machine
		m.asked.Store(0)
		records, err = other.Inspect(t.Context(), lease.Filter{})
	}
	if err != nil || len(records) != 40 || !records[39].Held || records[39].Remaining != 0 {
		t.Errorf("%d records: %v", len(records), err)
	}
	if n := m.asked.Load(); n > 5 { // each takes a quarter of the timeout
		t.Errorf("asked %d times within one timeout", n)
	}
	m.asked.Store(0)
	var reqs []lease.AcquireRequest
	for _, r := range records {
		reqs = append(reqs, lease.AcquireRequest{Key: r.Key, Owner: lease.NewOwner(), TTL: ttl})
	}
	answers, err := other.Acquire(t.Context(), reqs)
	for began := time.Now(); passes(err) && time.Since(began) < patience; {
		m.asked.Store(0)
		answers, err = other.Acquire(t.Context(), reqs)
	}
	if err != nil || len(answers) != 40 || answers[0].Granted || answers[0].Err != nil {
		t.Errorf("%+v, %v", answers, err)
	}
	if n := m.asked.Load(); n > 5 {
		t.Errorf("asked %d times within one timeout", n)
	}
}
