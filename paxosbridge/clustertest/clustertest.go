// Package clustertest is the conformance suite that every paxosbridge.Cluster must pass beside
// locktest. It checks what opening and sealing do, which request is refused in which epoch, and
// that no late call revives a past epoch.
package clustertest

import (
	"testing"

	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Harness gives the suite a cluster. The suite calls its functions from the test's own goroutine.
type Harness struct {
	// Open returns a cluster without records. It is called once per property, and closes the
	// cluster in tb.Cleanup.
	Open func(tb testing.TB) paxosbridge.Cluster
	// Another returns a second client of the same records, as another process has. If it is nil,
	// the suite uses the first.
	Another func(tb testing.TB, c paxosbridge.Cluster) paxosbridge.Cluster
	// Expire ends key's lease in the cluster, as if its TTL had passed.
	Expire func(tb testing.TB, c paxosbridge.Cluster, key string)
}
