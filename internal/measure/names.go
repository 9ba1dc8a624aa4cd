package measure

import (
	"strings"

	"github.com/rowlockdb/rowlock"
)

// Metric is a number with its name, by the conventions of OpenTelemetry.
type Metric struct{ Name, Unit, Help string }

// Number is a metric that rowlock.Stats has.
type Number struct {
	Metric
	// Gauge numbers go up and down; the others never fall.
	Gauge bool
	Of    func(s *rowlock.Stats) int64
}

// Numbers are read when metrics are collected, and cost a lock nothing.
var Numbers = []Number{
	gauge("lock.held", "{lock}", "Locks that were granted and have not ended",
		func(s *rowlock.Stats) int64 { return s.Held }),
	gauge("call.waiting", "{call}", "Calls that found a key held and wait for it, without the candidates of elections",
		func(s *rowlock.Stats) int64 { return s.Waiting }),
	count("lock.acquired", "{lock}", "Locks that were granted",
		func(s *rowlock.Stats) int64 { return s.Acquired }),
	count("lock.released", "{lock}", "Locks that ended by their holder or by Close",
		func(s *rowlock.Stats) int64 { return s.Released }),
	count("lock.contended", "{attempt}", "Attempts that found a key held",
		func(s *rowlock.Stats) int64 { return s.Contended }),
	count("call.deadlocked", "{call}", "Calls that were ended with ErrDeadlock, each for a cycle that was found",
		func(s *rowlock.Stats) int64 { return s.Deadlocks }),
	count("lock.unlock_failed", "{lock}", "Locks whose row could not be released in time",
		func(s *rowlock.Stats) int64 { return s.UnlockFailed }),
	count("lock.leaked", "{lock}", "Locks whose handle became garbage without Unlock",
		func(s *rowlock.Stats) int64 { return s.Leaks }),
	count("renewal.calls", "{call}", "Calls to the store that have renewed leases",
		func(s *rowlock.Stats) int64 { return s.Renewals }),
	count("renewal.leases", "{lease}", "Leases that were renewed",
		func(s *rowlock.Stats) int64 { return s.Renewed }),
	count("renewal.failed", "{lease}", "Leases that a call could not renew",
		func(s *rowlock.Stats) int64 { return s.RenewFailed }),
	gauge("orphan.open", "{request}", "Requests with an unknown outcome that are not cleaned up yet",
		func(s *rowlock.Stats) int64 { return s.OrphansOpen }),
	count("orphan.cleaned", "{request}", "Requests with an unknown outcome that were cleaned up",
		func(s *rowlock.Stats) int64 { return s.OrphansCleaned }),
	count("hint.heard", "{notification}", "Notifications that a key may be free",
		func(s *rowlock.Stats) int64 { return s.HintsHeard }),
	gauge("hint.listening", "{client}", "1 while notifications reach the client, otherwise 0",
		func(s *rowlock.Stats) int64 { return s.Listening }),
	count("report.dropped", "{report}", "Log lines and calls of hooks that were dropped",
		func(s *rowlock.Stats) int64 { return s.Untold }),
	gauge("connection.open", "{connection}", "Connections that the store keeps to itself",
		func(s *rowlock.Stats) int64 { return s.ConnectionsOpen }),
	gauge("connection.busy", "{connection}", "Connections of the store's own that run something now",
		func(s *rowlock.Stats) int64 { return s.ConnectionsBusy }),
	count("connection.batches", "{batch}", "How often a pinned connection took what was pending",
		func(s *rowlock.Stats) int64 { return s.Batches }),
	count("connection.requests", "{request}", "Requests that pinned connections took, in all batches",
		func(s *rowlock.Stats) int64 { return s.Requests }),
	count("connection.statements", "{statement}", "Statements that pinned connections sent, without BEGIN and COMMIT",
		func(s *rowlock.Stats) int64 { return s.Statements }),
}

// Metrics of hooks. The histograms are in seconds.
var (
	Wait     = metric("lock.wait.duration", "s", "How long granted locks were waited for")
	Hold     = metric("lock.hold.duration", "s", "How long released locks were held")
	HandOver = metric("lock.handover.duration", "s",
		"Time from a release to the grant of a call of the same process that waited for the key")
	Renewal = metric("renewal.duration", "s", "How long calls that renewed leases took")

	Lost      = metric("lock.lost", "{lock}", "Locks that ended otherwise than by their holder")
	Forced    = metric("lock.forced", "{lock}", "Locks that an operator took from their holder")
	Expired   = metric("lock.expired", "{lease}", "Expired leases that waiting calls have found")
	Suspected = metric("call.suspected", "{suspicion}", "Waits that may never end")
	Evicted   = metric("session.evicted", "{session}", "Sessions that were ended for an expired key")
	NotEvict  = metric("session.eviction_failed", "{session}", "Sessions that could not be ended")
	Skewed    = metric("clock.skewed", "{jump}", "Times the database's clock ran ahead")
	Moved     = metric("key.moved", "{key}", "Keys that a bridge moved to a cluster or back")
	Stayed    = metric("key.stayed", "{key}", "Moves that were given up before they changed anything")
	Recalled  = metric("key.recalled", "{key}", "Moves that the database had forgotten")
)

// Attributes. A key never is one, unless the user's own classifier says so.
const (
	Class  = "rowlock.key.class"
	Client = "rowlock.client.name"
	Cause  = "error.type"
)

// Bounds are the histograms' buckets in seconds: from a statement on a fast disk to an hour's hold.
var Bounds = []float64{
	.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
}

// Prometheus is the metric's name there, as OpenTelemetry's exporter translates it.
func (m Metric) Prometheus(counter bool) string {
	name := Label(m.Name)
	if m.Unit == "s" {
		name += "_seconds"
	}
	if counter {
		name += "_total"
	}
	return name
}

// Label is the name of an attribute in Prometheus.
func Label(attribute string) string { return strings.ReplaceAll(attribute, ".", "_") }

func metric(name, unit, help string) Metric { return Metric{"rowlock." + name, unit, help} }

func gauge(name, unit, help string, of func(s *rowlock.Stats) int64) Number {
	return Number{metric(name, unit, help), true, of}
}

func count(name, unit, help string, of func(s *rowlock.Stats) int64) Number {
	return Number{metric(name, unit, help), false, of}
}
