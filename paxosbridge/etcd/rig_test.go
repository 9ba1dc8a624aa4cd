package etcd_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/rowlockdb/rowlock/internal/race/bubbles"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// Parallel tests here wait for elections and for leases to end, and compute little, so that all may
// wait at once.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	bubbles.Main(m)
}

const ttl = 10 * time.Minute

// given returns the value of a variable, or skips the test aloud.
func given(tb testing.TB, variable string) string {
	tb.Helper()
	value := os.Getenv(variable)
	if value == "" {
		if slices.Contains(strings.Split(os.Getenv("ROWLOCK_TEST_REQUIRE"), ","), "etcd") {
			tb.Fatalf("etcd is required by ROWLOCK_TEST_REQUIRE and %s is not set", variable)
		}
		tb.Skipf("SKIPPED, NOT TESTED ON ETCD: set %s, or run make test", variable)
	}
	return value
}

// dial returns a client for the cluster that tests share.
func dial(tb testing.TB, opts ...grpc.DialOption) *clientv3.Client {
	tb.Helper()
	return dialTo(tb, strings.Split(given(tb, "ROWLOCK_TEST_ETCD"), ","), opts...)
}

func dialTo(tb testing.TB, endpoints []string, opts ...grpc.DialOption) *clientv3.Client {
	tb.Helper()
	return dialWith(tb, clientv3.Config{
		Endpoints:            endpoints,
		DialOptions:          opts,
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: time.Second,
	})
}

func dialWith(tb testing.TB, cfg clientv3.Config) *clientv3.Client {
	tb.Helper()
	cfg.DialTimeout, cfg.Logger = 5*time.Second, zap.NewNop()
	client, err := clientv3.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

var serial atomic.Int64

// fresh returns an unused prefix, and removes its keys after the test.
func fresh(tb testing.TB, client *clientv3.Client) string {
	tb.Helper()
	prefix := fmt.Sprintf("test %d %d %d/", os.Getpid(), time.Now().UnixNano(), serial.Add(1))
	tb.Cleanup(func() {
		_, err := client.Delete(context.Background(), prefix, clientv3.WithPrefix())
		if err != nil {
			tb.Error(err)
		}
	})
	return prefix
}

func join(
	tb testing.TB, client *clientv3.Client, prefix string, opts ...etcd.Option,
) *etcd.Cluster {
	tb.Helper()
	all := append([]etcd.Option{etcd.Prefix(prefix)}, opts...)
	c, err := etcd.New(tb.Context(), client, all...)
	// A busy machine does not answer in the short time that a test may give a call.
	for began := time.Now(); passes(err) && time.Since(began) < patience; {
		c, err = etcd.New(tb.Context(), client, all...)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// passes reports whether a call has ended because there was no answer in time.
func passes(err error) bool { return errors.Is(err, lease.ErrBusy) || errors.Is(err, lease.ErrUnknown) }

// rig is an empty Cluster, and its client.
type rig struct {
	testing.TB
	client *clientv3.Client
	prefix string
	*etcd.Cluster
}

func newRig(tb testing.TB, opts ...grpc.DialOption) *rig {
	tb.Helper()
	client := dial(tb, opts...)
	prefix := fresh(tb, client)
	return &rig{tb, client, prefix, join(tb, client, prefix)}
}

// another is the same in another process.
func (r *rig) another(opts ...grpc.DialOption) *rig {
	r.Helper()
	client := dial(r.TB, opts...)
	return &rig{r.TB, client, r.prefix, join(r.TB, client, r.prefix)}
}

// expire ends a lease, as etcd does.
func (r *rig) expire(key string) { r.Helper(); expire(r.TB, r.client, r.prefix, key) }

func expire(tb testing.TB, client *clientv3.Client, prefix, key string) {
	tb.Helper()
	if _, err := client.Delete(tb.Context(), fmt.Sprintf("%sh/%x", prefix, key)); err != nil {
		tb.Fatal(err)
	}
}

func (r *rig) try(key string, epoch int64) (lease.Lease, lease.Acquired, error) {
	q := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl, Epoch: epoch}
	a, err := r.Acquire(r.Context(), []lease.AcquireRequest{q})
	if err == nil {
		err = a[0].Err
	}
	return lease.Lease{Key: key, Owner: q.Owner, Token: a[0].Token}, a[0], err
}

func (r *rig) take(key string, epoch int64) lease.Lease {
	r.Helper()
	l, a, err := r.try(key, epoch)
	if err != nil || !a.Granted {
		r.Fatalf("acquire %q in epoch %d: %+v, %v", key, epoch, a, err)
	}
	return l
}

func (r *rig) do(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) wantRenew(l lease.Lease, want lease.RenewOutcome) {
	r.Helper()
	got, err := r.Renew(r.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
	if err != nil || got[0].Outcome != want {
		r.Errorf("renew %+v: %+v, %v; want %v", l, got, err, want)
	}
}

func (r *rig) release(l lease.Lease) lease.Released {
	r.Helper()
	got, err := r.Release(r.Context(), []lease.Lease{l})
	r.do(err)
	return got[0]
}

// patience bounds waits that must end.
const patience = time.Minute

func eventually(tb testing.TB, what string, done func() bool) {
	tb.Helper()
	for began := time.Now(); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			tb.Fatalf("%s: not within %s", what, patience)
		}
	}
}
