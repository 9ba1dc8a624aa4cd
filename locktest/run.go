package locktest

import (
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
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
	// ability reports whether the store can do it, and lacking says that it cannot. nil: every
	// store can.
	ability func(s lease.Store) bool
	lacking string
}

func has[A any](s lease.Store) bool {
	_, ok := s.(A)
	return ok
}

func topics() []topic {
	return []topic{
		{name: "acquire", properties: acquireProperties},
		{name: "renew", properties: renewProperties},
		{name: "release", properties: releaseProperties},
		{name: "batch", properties: batchProperties},
		{name: "tokens", properties: tokenProperties},
		{name: "keys", properties: keyProperties},
		{name: "inspect", properties: inspectProperties},
		{name: "time", properties: timeProperties},
		{name: "cancel", properties: cancelProperties},
		{name: "race", properties: raceProperties},
		{name: "history", properties: historyProperties},
		{
			"sweep", slices.Concat(sweepProperties, sweepLoadProperties),
			has[lease.Sweeper], "the store is not a lease.Sweeper",
		},
		{
			"fence", slices.Concat(fenceProperties, fenceBesideProperties),
			has[lease.Fencer], "the store is not a lease.Fencer",
		},
		{
			"renewing fence", fenceRenewProperties,
			has[lease.RenewingFencer], "the store is not a lease.RenewingFencer",
		},
		{
			"release in a transaction", releaseTxProperties,
			has[lease.TxReleaser], "the store is not a lease.TxReleaser",
		},
		{"hand over", handOverProperties, has[lease.Passer], "the store is not a lease.Passer"},
		{"acquire all", togetherProperties, canAll, noAll},
		{"queue", slices.Concat(
			queueProperties, queueGrantProperties, claimProperties, placeProperties, queueRaceProperties,
		), has[lease.Queue], "the store is not a lease.Queue"},
		{"hints", slices.Concat(interestProperties, notifyProperties), func(s lease.Store) bool {
			return has[lease.Registry](s) || has[lease.Notifier](s)
		}, "the store is neither a lease.Registry nor a lease.Notifier"},
	}
}

// Run proves every property of a store, each over a store of its own, as subtests of t.
func Run(t *testing.T, h Harness) {
	t.Helper()
	requireHooks(t, h)
	for _, topic := range topics() {
		t.Run(topic.name, func(t *testing.T) {
			if topic.ability != nil && !topic.ability(h.Open(t)) { // once, not for each property
				t.Skip(topic.lacking)
			}
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
