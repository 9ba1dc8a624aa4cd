package wlock_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
	"github.com/rowlockdb/rowlock/wlock/internal/frame"
	"github.com/rowlockdb/rowlock/wlock/internal/wlocktest"
)

// overTCP is a store whose keys are all on one server, and the server.
func overTCP(tb testing.TB) (*wlock.Store, *wlocktest.Node) {
	tb.Helper()
	c := wlocktest.New(wlocktest.Options{Nodes: 1, Groups: 15, TCP: true}, cluster)
	tb.Cleanup(c.Close)
	return open(tb, patient(wlock.Config{Registry: []string{c.Address}, Cluster: cluster})), c.Node(1)
}

// pairs acquires and releases keys of 64 callers side by side, until more returns false.
func pairs(tb testing.TB, s *wlock.Store, more func() bool) {
	tb.Helper()
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			key := fmt.Sprint("key ", i)
			for more() {
				q := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: time.Minute}
				a, err := s.Acquire(context.Background(), []lease.AcquireRequest{q})
				if err != nil || !a[0].Granted {
					tb.Errorf("%+v, %v", a, err)
					return
				}
				l := lease.Lease{Key: key, Owner: q.Owner, Token: a[0].Token}
				if r, err := s.Release(context.Background(), []lease.Lease{l}); err != nil || r[0].Gone {
					tb.Errorf("%+v, %v", r, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// A pair is two requests and two round trips, and all callers share one connection.
func TestAPairIsTwoRequestsOverOneConnection(t *testing.T) {
	s, n := overTCP(t)
	var requests, count atomic.Int64
	n.Fault(func(q *frame.Request) wlocktest.Fault {
		requests.Add(1)
		return wlocktest.None
	})
	pairs(t, s, func() bool { return count.Add(1) <= 2000 })
	if got := requests.Load(); got != 4000 {
		t.Errorf("2000 pairs made %d requests", got)
	}
	if got := n.Connections(); got != 1 {
		t.Errorf("%d connections", got)
	}
}

// go test -bench Pairs ./wlock prints pairs/s.
func BenchmarkPairs(b *testing.B) {
	s, _ := overTCP(b)
	var count atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	pairs(b, s, func() bool { return count.Add(1) <= int64(b.N) })
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}
