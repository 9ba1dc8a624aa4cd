package locktest

import (
	"slices"
	"testing"
)

// property is one sentence about a store and the calls that prove it.
type property struct {
	name  string
	check func(r *rig)
}

// topic is a group of properties that can be run by name.
type topic struct {
	name       string
	properties []property
}

func topics() []topic {
	return []topic{
		{"acquire", acquireProperties},
		{"renew", renewProperties},
		{"release", releaseProperties},
		{"batch", batchProperties},
		{"tokens", tokenProperties},
		{"keys", keyProperties},
		{"inspect", inspectProperties},
		{"time", timeProperties},
		{"cancel", cancelProperties},
		{"race", raceProperties},
		{"history", historyProperties},
		{"sweep", slices.Concat(sweepProperties, sweepLoadProperties)},
		{"fence", slices.Concat(fenceProperties, fenceBesideProperties)},
		{"release in a transaction", releaseTxProperties},
		{"hand over", handOverProperties},
		{"queue", slices.Concat(queueProperties, queueGrantProperties, claimProperties, placeProperties, queueRaceProperties)},
		{"hints", slices.Concat(interestProperties, notifyProperties)},
	}
}

// Run proves every property of a store, each over a store of its own, as subtests of t.
func Run(t *testing.T, h Harness) {
	t.Helper()
	requireHooks(t, h)
	for _, topic := range topics() {
		t.Run(topic.name, func(t *testing.T) {
			for _, p := range topic.properties {
				t.Run(p.name, func(t *testing.T) { p.check(newRig(t, h)) })
			}
		})
	}
}

func requireHooks(tb testing.TB, h Harness) {
	tb.Helper()
	if h.Open == nil || h.Expire == nil {
		tb.Fatal("locktest: Harness.Open and Harness.Expire are required")
	}
}
