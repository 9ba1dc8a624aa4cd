package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// counter counts a client's calls by the last part of their names.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *counter) option() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			c.mu.Lock()
			if c.calls == nil {
				c.calls = make(map[string]int)
			}
			c.calls[method[strings.LastIndex(method, "/")+1:]]++
			c.mu.Unlock()
			return invoke(ctx, method, req, reply, cc, opts...)
		},
	)
}

// since returns the calls made in between.
func (c *counter) since(f func()) string {
	c.mu.Lock()
	c.calls = make(map[string]int)
	c.mu.Unlock()
	f()
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.calls)
}

func TestEachCallIsOneRoundTrip(t *testing.T) {
	var count counter
	r := newRig(t, count.option())
	for _, epoch := range []int64{0, 7} {
		key := fmt.Sprint("k", epoch)
		if epoch > 0 {
			r.do(r.Open(r.Context(), key, epoch))
		}
		// Now there is an etcd lease for this TTL, and in epoch 0 a record.
		r.release(r.take(key, epoch))
		var l lease.Lease
		to := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl}
		var first lease.Lease
		for _, step := range []struct {
			name string
			do   func()
		}{
			{"acquire without a record", func() { first = r.take("first"+key, 0) }},
			{"acquire", func() { l = r.take(key, epoch) }},
			{"lose", func() { _, _, _ = r.try(key, epoch) }},
			{"renew", func() { r.wantRenew(l, lease.Extended) }},
			{"renew many", func() {
				reqs := make([]lease.RenewRequest, 63)
				for i := range reqs {
					reqs[i] = lease.RenewRequest{Lease: l, TTL: ttl}
					reqs[i].Key = fmt.Sprint(i)
				}
				_, err := r.Renew(r.Context(), append(reqs, lease.RenewRequest{Lease: l, TTL: ttl}))
				r.do(err)
			}},
			{"hand over", func() {
				a, err := r.HandOver(r.Context(), []lease.HandOver{{From: l, To: to}})
				r.do(err)
				l = lease.Lease{Key: key, Owner: to.Owner, Token: a[0].Token}
			}},
			{"release", func() { r.release(l) }},
			{"open", func() { r.do(r.Open(r.Context(), key, epoch+2)) }},
			{"supersede", func() { r.do(r.Supersede(r.Context(), key, epoch+4)) }},
			{"seal", func() { _, err := r.Seal(r.Context(), first); r.do(err) }},
		} {
			if got := count.since(step.do); got != "map[Txn:1]" {
				t.Errorf("%s in epoch %d took %s, want one transaction", step.name, epoch, got)
			}
		}
	}
}

// The test also renews them: that must put them under newer leases, without a lease for each.
func TestManyLocksShareFewLeases(t *testing.T) {
	t.Parallel()
	const n = 2_000
	var count counter
	r := newRig(t, count.option())
	leases := make([]lease.Lease, 0, n)
	calls := count.since(func() {
		reqs := make([]lease.AcquireRequest, n)
		for i := range reqs {
			reqs[i] = lease.AcquireRequest{
				Key: fmt.Sprint("k", i), Owner: lease.NewOwner(), TTL: 30 * time.Second,
			}
		}
		answers, err := r.Acquire(r.Context(), reqs)
		r.do(err)
		renew := make([]lease.RenewRequest, n)
		for i, a := range answers {
			if !a.Granted {
				t.Fatalf("%d: %+v", i, a)
			}
			leases = append(
				leases, lease.Lease{Key: reqs[i].Key, Owner: reqs[i].Owner, Token: a.Token},
			)
			renew[i] = lease.RenewRequest{Lease: leases[i], TTL: 30 * time.Second}
		}
		renewed, err := r.Renew(r.Context(), renew)
		r.do(err)
		for i, a := range renewed {
			if a.Outcome != lease.Extended {
				t.Fatalf("renewal %d: %+v", i, a)
			}
		}
	})
	got, err := r.client.Get(r.Context(), r.prefix+"h/", clientv3.WithPrefix())
	r.do(err)
	shared := make(map[int64]bool)
	for _, kv := range got.Kvs {
		shared[kv.Lease] = true
	}
	t.Logf("%d locks under %d etcd leases, with %s", len(got.Kvs), len(shared), calls)
	if len(got.Kvs) != n || len(shared) > 10 {
		t.Errorf("%d locks are under %d etcd leases", len(got.Kvs), len(shared))
	}
}

func TestALoanOutlivesTheTTLByAnEighthOrTwoSeconds(t *testing.T) {
	for _, c := range []struct {
		ttl  time.Duration
		want int64
	}{
		{0, 2},
		{time.Millisecond, 2},
		{400 * time.Millisecond, 2},
		{time.Second, 2},
		{1500 * time.Millisecond, 3},
		{8 * time.Second, 9},
		{30 * time.Second, 34},
		{10 * time.Minute, 675},
		{1<<63 - 1, 9_000_000_000},
	} {
		if got := etcd.SecondsFor(c.ttl); got != c.want {
			t.Errorf("a lock of %s is put under a lease of %d s, want %d", c.ttl, got, c.want)
		}
	}
}

// etcd takes long to grant a lease, unless another acquire is answered meanwhile. Only the first
// acquire waits for one, and on a machine that stands still for a second another may.
func TestNoAcquireWaitsForALoan(t *testing.T) {
	t.Parallel()
	const long = 3 * time.Second // and no acquire takes as long on a busy machine
	var loans, waited atomic.Int64
	answered := make(chan struct{})
	r := newRig(
		t,
		grpc.WithChainUnaryInterceptor(
			func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
				invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
			) error {
				if strings.HasSuffix(method, "/LeaseGrant") && loans.Add(1) > 1 {
					select {
					case <-answered:
					case <-time.After(long):
						waited.Add(1)
					}
				}
				return invoke(ctx, method, req, reply, cc, opts...)
			},
		),
	)
	const d = 16 * time.Second // its etcd lease is lent for 2 s
	for began, i := time.Now(), 0; time.Since(began) < 5*time.Second; i++ {
		_, err := r.Acquire(
			t.Context(),
			[]lease.AcquireRequest{{Key: fmt.Sprint(i), Owner: lease.NewOwner(), TTL: d}},
		)
		r.do(err)
		select {
		case answered <- struct{}{}:
		default:
		}
		time.Sleep(20 * time.Millisecond)
	}
	if n, late := loans.Load()-1, waited.Load(); n < 1 || late == n {
		t.Errorf("acquires have waited for %d of %d leases that were lent", late, n)
	}
}

func TestEveryLockIsUnderALease(t *testing.T) {
	r := newRig(t)
	for i, d := range []time.Duration{0, -time.Second, time.Nanosecond} {
		q := lease.AcquireRequest{Key: fmt.Sprint(i), Owner: lease.NewOwner(), TTL: d}
		a, err := r.Acquire(t.Context(), []lease.AcquireRequest{q})
		r.do(err)
		_, err = r.HandOver(
			t.Context(),
			[]lease.HandOver{
				{From: lease.Lease{Key: q.Key, Owner: q.Owner, Token: a[0].Token}, To: q},
			},
		)
		r.do(err)
	}
	got, err := r.client.Get(t.Context(), r.prefix+"h/", clientv3.WithPrefix())
	r.do(err)
	for _, kv := range got.Kvs {
		if kv.Lease == 0 {
			t.Errorf("%s is under no lease: it would be held for ever", kv.Key)
		}
	}
}

// The test acquires locks as long as one etcd lease is lent, and checks what is left of it.
func TestALeaseNeverEndsEarly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const d = 2 * time.Second
	for i := range 20 {
		q := lease.AcquireRequest{Key: fmt.Sprint(i), Owner: lease.NewOwner(), TTL: d}
		sent := time.Now()
		a, err := r.Acquire(t.Context(), []lease.AcquireRequest{q})
		if err != nil || !a[0].Granted {
			t.Fatalf("%+v, %v", a, err)
		}
		l := lease.Lease{Key: q.Key, Owner: q.Owner, Token: a[0].Token}
		if i%10 == 9 { // this one is watched until it ends
			eventually(
				t, "the end of a lease", func() bool { row := r.row(q.Key); return !row.Held },
			)
			if lasted := time.Since(sent); lasted < d {
				t.Errorf("a lease of %s ended after %s", d, lasted)
			}
			r.wantRenew(l, lease.Lost)
			continue
		}
		time.Sleep(50 * time.Millisecond) // so that the etcd lease grows old
	}
}

func (r *rig) row(key string) lease.Record {
	r.Helper()
	rows, err := r.Inspect(r.Context(), lease.Filter{Keys: []string{key}})
	if err != nil || len(rows) != 1 {
		r.Fatalf("inspect %q: %+v, %v", key, rows, err)
	}
	return rows[0]
}

// etcd answers in whole seconds, rounded down, and is asked once.
func TestAnotherProcessSeesHowLongALeaseLasts(t *testing.T) {
	r := newRig(t)
	var count counter
	there := r.another(count.option())
	there.release(there.take("ours", 0))
	taken := time.Now()
	r.take("k", 0)
	calls := count.since(func() {
		for range 3 {
			_, a, err := there.try("k", 0)
			if rest := a.Holder.Remaining; err != nil || a.Granted || rest > ttl ||
				rest < ttl-time.Since(taken)-2*time.Second {
				t.Errorf("the waiter was answered %+v, %v", a, err)
			}
		}
	})
	if calls != "map[LeaseTimeToLive:1 Txn:3]" {
		t.Errorf("three refusals took %s", calls)
	}
	row := there.row("k")
	if !row.Held || row.Remaining > ttl || row.Remaining < ttl-time.Since(taken)-2*time.Second ||
		row.Age < -time.Second || row.Age > patience {
		t.Errorf("the row is shown as %+v", row)
	}
}

// The etcd lease was revoked, or ended while this machine was suspended.
func TestALoanThatEtcdHasEnded(t *testing.T) {
	r := newRig(t)
	old := r.take("old", 0)
	got, err := r.client.Get(t.Context(), r.prefix+"h/", clientv3.WithPrefix())
	r.do(err)
	_, err = r.client.Revoke(t.Context(), clientv3.LeaseID(got.Kvs[0].Lease))
	r.do(err)
	r.wantRenew(old, lease.Lost)
	l, a, err := r.try("new", 0)
	if err != nil || !a.Granted || a.Unknown {
		t.Errorf("acquire: %+v, %v", a, err)
	}
	r.wantRenew(l, lease.Extended)
}

func TestTokensRunOut(t *testing.T) {
	client := dial(t)
	prefix := fresh(t, client)
	r := &rig{t, client, prefix, join(t, client, prefix, etcd.LastCounter(3))}
	r.release(r.take("k", 0)) // counter 1, and 2 by the release
	last := r.take("k", 0)
	if last.Token != 3 {
		t.Fatalf("token %d, want 3", last.Token)
	}
	r.wantRenew(last, lease.Extended)
	a, err := r.HandOver(
		t.Context(),
		[]lease.HandOver{
			{From: last, To: lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}},
		},
	)
	if err != nil || a[0].Granted {
		t.Errorf("handed over beyond the last: %+v, %v", a, err)
	}
	if _, a, err := r.try("k", 0); err != nil || a.Granted {
		t.Errorf("a held key: %+v, %v", a, err)
	}
	r.release(last)
	for range 2 {
		if _, a, err := r.try("k", 0); !errors.Is(err, lease.ErrTokenExhausted) {
			t.Errorf("acquire beyond the last: %+v, %v", a, err)
		}
	}
	r.take("other", 0)
}
