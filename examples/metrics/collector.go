// Package metrics is code to copy: a client's numbers for Prometheus, and its locks as spans of
// OpenTelemetry.
package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlockdb/rowlock"
)

// Collector has the numbers of a client. Register it with a prometheus.Registry.
type Collector struct{ locks *rowlock.Client }

// NewCollector returns a collector of the client's numbers.
func NewCollector(locks *rowlock.Client) Collector { return Collector{locks} }

// metric is a number of rowlock.Stats under its name in Prometheus.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(s *rowlock.Stats) int64
}

func gauge(name, help string, of func(s *rowlock.Stats) int64) metric {
	return metric{prometheus.NewDesc("rowlock_"+name, help, nil, nil), prometheus.GaugeValue, of}
}

func counter(name, help string, of func(s *rowlock.Stats) int64) metric {
	return metric{
		prometheus.NewDesc("rowlock_"+name+"_total", help, nil, nil), prometheus.CounterValue, of,
	}
}

var metrics = []metric{
	gauge("held", "locks that were granted and have not ended",
		func(s *rowlock.Stats) int64 { return s.Held }),
	gauge("waiting", "calls that wait for a key",
		func(s *rowlock.Stats) int64 { return s.Waiting }),
	counter("acquired", "locks that were granted",
		func(s *rowlock.Stats) int64 { return s.Acquired }),
	counter("lost", "locks that ended otherwise than by their holders",
		func(s *rowlock.Stats) int64 { return s.Lost }),
	counter("contended", "attempts that found a key held",
		func(s *rowlock.Stats) int64 { return s.Contended }),
	counter("leaks", "locks whose handles were forgotten",
		func(s *rowlock.Stats) int64 { return s.Leaks }),
	counter("unlock_failed", "locks whose rows could not be released in time",
		func(s *rowlock.Stats) int64 { return s.UnlockFailed }),
	counter("renew_failed", "leases that a renewal could not renew",
		func(s *rowlock.Stats) int64 { return s.RenewFailed }),
	gauge("orphans", "requests with an unknown outcome that are being cleaned up",
		func(s *rowlock.Stats) int64 { return s.OrphansOpen }),
	gauge("lanes_busy", "connections of rowlock's that run something",
		func(s *rowlock.Stats) int64 { return s.ConnectionsBusy }),
	counter("requests", "requests to the database",
		func(s *rowlock.Stats) int64 { return s.Requests }),
	counter("batches", "batches that the requests shared",
		func(s *rowlock.Stats) int64 { return s.Batches }),
	counter("statements", "statements sent for the batches",
		func(s *rowlock.Stats) int64 { return s.Statements }),
}

// Describe names all metrics.
func (c Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range metrics {
		to <- m.desc
	}
}

// Collect reads them.
func (c Collector) Collect(to chan<- prometheus.Metric) {
	s := c.locks.Stats()
	for _, m := range metrics {
		to <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(m.of(&s)))
	}
}
