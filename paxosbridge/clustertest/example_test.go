package clustertest_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/clustertest"
)

// The whole test of a cluster, beside locktest.Run. The cluster here is in memory: put your own
// in its place.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestEpochs(t *testing.T)
		clustertest.Run(t, clustertest.Harness{
			Open: func(testing.TB) paxosbridge.Cluster { return memcluster.New() },
			Expire: func(_ testing.TB, c paxosbridge.Cluster, key string) {
				c.(*memcluster.Cluster).Expire(key)
			},
		})
	}
	// Output:
}
