package etcd_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// granter grants etcd leases, and its answers take a while.
type granter struct {
	clientv3.Lease
	takes time.Duration
	mu    sync.Mutex
	ends  []time.Time
}

func (g *granter) Grant(_ context.Context, seconds int64) (*clientv3.LeaseGrantResponse, error) {
	g.mu.Lock()
	g.ends = append(g.ends, time.Now().Add(time.Duration(seconds)*time.Second))
	r := &clientv3.LeaseGrantResponse{ID: clientv3.LeaseID(len(g.ends)), TTL: seconds}
	g.mu.Unlock()
	time.Sleep(g.takes)
	return r, nil
}

// A caller that finds another's request under way is lent no loan that was requested so long ago
// that it ends before the TTL.
func TestALoanThatWasRequestedLongAgoIsNotLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 4 * time.Second // its loan lasts 5 s
		g := &granter{takes: 3 * time.Second}
		client := clientv3.NewCtxClient(t.Context())
		client.Lease = g
		lend := etcd.Lender(client)
		var wg sync.WaitGroup
		for _, late := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond, 2 * time.Second} {
			wg.Go(func() {
				time.Sleep(late)
				asked := time.Now()
				id, err := lend(ttl)
				g.mu.Lock()
				defer g.mu.Unlock()
				if err != nil {
					t.Error(err)
				} else if lasts := g.ends[id-1].Sub(asked); lasts < ttl {
					t.Errorf("%v after the first, a lock of %v was put under a lease of %v", late, ttl, lasts)
				}
			})
		}
		wg.Wait()
		if n := len(g.ends); n != 2 {
			t.Errorf("%d leases were requested, want one for the first two callers, and one for the others", n)
		}
	})
}

// The longest TTL is longer than any lease of etcd.
func TestTheLongestTTLIsLentTheLongestLoan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(granter)
		client := clientv3.NewCtxClient(t.Context())
		client.Lease = g
		if _, err := etcd.Lender(client)(1<<63 - 1); err != nil || len(g.ends) != 1 {
			t.Errorf("%d leases, %v", len(g.ends), err)
		}
	})
}
