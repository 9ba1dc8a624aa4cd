package memcluster_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/locktest"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/clustertest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Run("store", func(t *testing.T) {
		locktest.Run(t, locktest.Harness{
			Open:   func(testing.TB) lease.Store { return memcluster.New() },
			Expire: func(_ testing.TB, s lease.Store, key string) { s.(*memcluster.Cluster).Expire(key) },
		})
	})
	t.Run("cluster", func(t *testing.T) {
		clustertest.Run(t, clustertest.Harness{
			Open:   func(testing.TB) paxosbridge.Cluster { return memcluster.New() },
			Expire: func(_ testing.TB, c paxosbridge.Cluster, key string) { c.(*memcluster.Cluster).Expire(key) },
		})
	})
}
