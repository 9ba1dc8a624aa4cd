package groupreplication_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/clustertest"
	"github.com/rowlockdb/rowlock/paxosbridge/groupreplication"
)

// The suite of every store, for requests that name no epoch and for those that do. One statement
// grants both; clustertest tests the epochs.
func TestConformance(t *testing.T) {
	t.Run("without an epoch", func(t *testing.T) {
		t.Parallel() // the group's agreement takes the time
		r := newRig(t)
		locktest.Run(t, harness(r, r.cluster(), r.cluster()))
	})
	t.Run("in an epoch", func(t *testing.T) {
		long(t, "it is another twenty seconds of commits")
		t.Parallel()
		r := newRig(t)
		h := harness(r, inEpoch{r.cluster()}, inEpoch{r.cluster()})
		h.SetToken = nil // an epoch ends before lease.MaxToken
		locktest.Run(t, h)
	})
}

func harness(r *rig, here, there lease.Store) locktest.Harness {
	return locktest.Harness{
		Open: func(tb testing.TB) lease.Store {
			r.empty()
			return here
		},
		Another:  func(testing.TB, lease.Store) lease.Store { return there },
		Expire:   func(_ testing.TB, _ lease.Store, key string) { r.expire(key) },
		SetToken: func(_ testing.TB, _ lease.Store, key string, token lease.Token) { r.setToken(key, token) },
		Slow:     true,
		Load:     300 * time.Millisecond,
	}
}

// inEpoch opens every key in epoch 1, and requests it there.
type inEpoch struct{ *groupreplication.Cluster }

func (c inEpoch) Acquire(
	ctx context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	named := make([]lease.AcquireRequest, len(reqs))
	var wg sync.WaitGroup
	for i, r := range reqs {
		wg.Go(func() { _ = c.Open(ctx, r.Key, 1) }) // a key that cannot be opened is refused below
		r.Epoch = 1
		named[i] = r
	}
	wg.Wait()
	return c.Cluster.Acquire(ctx, named)
}

func TestClusterConformance(t *testing.T) {
	r := newRig(t)
	here, there := r.cluster(), r.cluster()
	clustertest.Run(t, clustertest.Harness{
		Open: func(testing.TB) paxosbridge.Cluster {
			r.empty()
			return here
		},
		Another: func(testing.TB, paxosbridge.Cluster) paxosbridge.Cluster { return there },
		Expire:  func(_ testing.TB, _ paxosbridge.Cluster, key string) { r.expire(key) },
	})
}
