package locktest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
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

// reaches also looks beneath the store, as a client does.
func reaches[A any](s lease.Store) bool {
	_, ok := adapter.As[A](s)
	return ok
}

// able is the store, or what is beneath it, as one that can do it. It skips the test without one.
func able[A any](r *rig, s lease.Store) A {
	r.Helper()
	a, ok := adapter.As[A](s)
	if !ok {
		r.Skipf("the store is not a %v", reflect.TypeFor[A]())
	}
	return a
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
			"shared", slices.Concat(sharedProperties, sharedBatchProperties, sharedRaceProperties),
			reaches[lease.Sharer], "the store is not a lease.Sharer",
		},
		{
			"renewing fence", fenceRenewProperties,
			has[lease.RenewingFencer], "the store is not a lease.RenewingFencer",
		},
		{
			"release in a transaction", releaseTxProperties,
			has[lease.TxReleaser], "the store is not a lease.TxReleaser",
		},
		{"raise", raiseProperties, has[lease.Raiser], "the store is not a lease.Raiser"},
		{
			"force release", forceProperties,
			reaches[lease.ForceReleaser], "the store is not a lease.ForceReleaser",
		},
		{"trace", traceProperties, reaches[lease.Tracer], "the store is not a lease.Tracer"},
		{"hand over", handOverProperties, has[lease.Passer], "the store is not a lease.Passer"},
		{"acquire all", togetherProperties, canAll, noAll},
		{"acquire any", anyProperties, canAny, noAny},
		{"limit", limitProperties, has[lease.Limiter], "the store is not a lease.Limiter"},
		{
			"hand over slots", slotPassProperties,
			has[lease.SlotPasser], "the store is not a lease.SlotPasser",
		},
		{"queue", slices.Concat(
			queueProperties, queueGrantProperties, claimProperties, placeProperties,
			queueRaceProperties,
		), has[lease.Queue], "the store is not a lease.Queue"},
		{"hints", slices.Concat(interestProperties, notifyProperties), func(s lease.Store) bool {
			return has[lease.Registry](s) || has[lease.Notifier](s)
		}, "the store is neither a lease.Registry nor a lease.Notifier"},
		{
			"graph", slices.Concat(graphProperties, graphWideProperties),
			reaches[lease.Graph], "the store is not a lease.Graph",
		},
	}
}

// Run proves every property of a store, each over a store of its own or, with [Harness.Empty], over
// an emptied one, as subtests of t.
func Run(t *testing.T, h Harness) {
	t.Helper()
	requireHooks(t, h)
	requireTopics(t, h.Without)
	h = h.kept(t)
	for _, topic := range topics() {
		t.Run(topic.name, func(t *testing.T) {
			if slices.Contains(h.Without, topic.name) {
				t.Skip("Harness.Without has it")
			}
			if topic.ability != nil && !topic.ability(h.Open(t)) { // once, not for each property
				t.Skip(topic.lacking)
			}
			for _, p := range topic.properties {
				t.Run(p.name, func(t *testing.T) {
					if slices.Contains(h.Without, topic.name+"/"+p.name) {
						t.Skip("Harness.Without has it")
					}
					p.check(newRig(t, h))
				})
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

func requireTopics(tb testing.TB, names []string) {
	tb.Helper()
	for _, name := range names {
		if !slices.ContainsFunc(topics(), func(t topic) bool { return t.has(name) }) {
			tb.Fatalf("locktest: Harness.Without has %q, which is no topic and no property", name)
		}
	}
}

func (t topic) has(name string) bool {
	return t.name == name || slices.ContainsFunc(t.properties, func(p property) bool {
		return t.name+"/"+p.name == name
	})
}
