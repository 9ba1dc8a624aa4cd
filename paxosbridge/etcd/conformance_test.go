package etcd_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/clustertest"
)

func TestConformance(t *testing.T) { locktest.Run(t, harness(t)) }

func TestRandomCalls(t *testing.T) { locktest.RunRandom(t, harness(t), 10) }

// harness uses one client for each of two processes, because dialing takes longer than many
// properties do.
func harness(t *testing.T) locktest.Harness {
	here, there := dial(t), dial(t)
	var prefix string
	return locktest.Harness{
		Open: func(tb testing.TB) lease.Store {
			prefix = fresh(tb, here)
			return join(tb, here, prefix)
		},
		Another: func(tb testing.TB, _ lease.Store) lease.Store { return join(tb, there, prefix) },
		Expire:  func(tb testing.TB, _ lease.Store, key string) { expire(tb, here, prefix, key) },
		Load:    300 * time.Millisecond,
	}
}

func TestClusterConformance(t *testing.T) {
	here, there := dial(t), dial(t)
	var prefix string
	clustertest.Run(t, clustertest.Harness{
		Open: func(tb testing.TB) paxosbridge.Cluster {
			prefix = fresh(tb, here)
			return join(tb, here, prefix)
		},
		Another: func(tb testing.TB, _ paxosbridge.Cluster) paxosbridge.Cluster {
			return join(tb, there, prefix)
		},
		Expire: func(tb testing.TB, _ paxosbridge.Cluster, key string) {
			expire(tb, here, prefix, key)
		},
	})
}
