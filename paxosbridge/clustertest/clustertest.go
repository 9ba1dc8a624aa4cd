// Package clustertest is the conformance suite that every paxosbridge.Cluster must pass beside locktest: what opening and sealing mean,
// which request is refused in which epoch, and that no late call brings back what is over.
package clustertest

import (
	"testing"

	"github.com/rowlockdb/rowlock/paxosbridge"
)

// Harness tells the suite how to get hold of a cluster. Hooks are called from the test's own goroutine.
type Harness struct {
	// Open returns a cluster without records. It is called once per property. What needs closing is closed with tb.Cleanup.
	Open func(tb testing.TB) paxosbridge.Cluster
	// Another returns a second client of the same records, as another process would have. nil means that the first is used.
	Another func(tb testing.TB, c paxosbridge.Cluster) paxosbridge.Cluster
	// Expire ends key's lease in the cluster, as if its TTL had passed.
	Expire func(tb testing.TB, c paxosbridge.Cluster, key string)
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			r := &rig{TB: t, h: h, here: h.Open(t)}
			r.there = r.here
			if h.Another != nil {
				r.there = h.Another(t, r.here)
			}
			p.prove(r)
		})
	}
}

type property struct {
	name  string
	prove func(*rig)
}

var properties = []property{
	{"a key without a record is refused in every epoch, and gets none by it", refusedWithoutRecord},
	{"an open record is granted in its epoch only", grantedInItsEpoch},
	{"a repeated request in an epoch returns the same lease", repeatedRequest},
	{"an epoch that is opened again keeps its holder and its tokens", openedAgain},
	{"an older epoch is not opened", olderEpoch},
	{"the holder seals, and nobody is granted anything after", sealed},
	{"who does not hold the key does not seal it", sealedByOthers},
	{"a holder whose lease was taken does not seal", sealedTooLate},
	{"a sealed epoch is not opened by a late call", lateOpen},
	{"the next epoch opens above a sealed one, and tokens grow", nextEpoch},
	{"a hand-over stays within its epoch", handOver},
	{"superseding seals what is older, held or not, and nothing newer", supersede},
	{"a request without an epoch goes by the record", withoutEpoch},
	{"records are listed in key order, page by page", records},
	{"the probe answers", probe},
	{"whoever moves the key, one holds it at a time and tokens grow", race},
}
