package promrowlock

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlockdb/rowlock/internal/measure"
)

// metrics are what hooks record.
type metrics struct {
	fixed prometheus.Labels
	all   []prometheus.Collector

	classes
	renewal                            prometheus.Histogram
	lost                               *prometheus.CounterVec
	forced, expired, suspected, skewed prometheus.Counter
	evictions
	moves
}

// evictions are of sessions that have the row of an expired key locked.
type evictions struct{ evicted, notEvicted prometheus.Counter }

// moves are of keys, between the table and a cluster.
type moves struct{ moved, stayed, recalled prometheus.Counter }

// classes are the histograms that tell classes of keys apart.
type classes struct{ wait, hold, handOver *prometheus.HistogramVec }

// observers are the histograms of a class of keys.
type observers struct{ wait, hold, handOver prometheus.Observer }

func newMetrics(fixed prometheus.Labels) *metrics {
	m := &metrics{fixed: fixed}
	m.wait, m.hold = m.histograms(measure.Wait), m.histograms(measure.Hold)
	m.handOver = m.histograms(measure.HandOver)
	m.renewal = prometheus.NewHistogram(m.buckets(measure.Renewal))
	m.all = append(m.all, m.renewal)
	m.lost = prometheus.NewCounterVec(
		prometheus.CounterOpts(m.options(measure.Lost)), []string{measure.Label(measure.Cause)})
	m.all = append(m.all, m.lost)
	for _, cause := range measure.Causes {
		m.lost.WithLabelValues(cause)
	}
	m.forced, m.expired = m.counter(measure.Forced), m.counter(measure.Expired)
	m.suspected, m.skewed = m.counter(measure.Suspected), m.counter(measure.Skewed)
	m.evicted, m.notEvicted = m.counter(measure.Evicted), m.counter(measure.NotEvict)
	m.moved, m.stayed = m.counter(measure.Moved), m.counter(measure.Stayed)
	m.recalled = m.counter(measure.Recalled)
	return m
}

// of makes the histograms of a class of keys.
func (c *classes) of(class string) *observers {
	return &observers{
		c.wait.WithLabelValues(class), c.hold.WithLabelValues(class),
		c.handOver.WithLabelValues(class),
	}
}

func (m *metrics) histograms(of measure.Metric) *prometheus.HistogramVec {
	made := prometheus.NewHistogramVec(m.buckets(of), []string{measure.Label(measure.Class)})
	m.all = append(m.all, made)
	return made
}

func (m *metrics) buckets(of measure.Metric) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: of.Prometheus(false), Help: of.Help, ConstLabels: m.fixed, Buckets: measure.Bounds,
	}
}

func (m *metrics) counter(of measure.Metric) prometheus.Counter {
	made := prometheus.NewCounter(prometheus.CounterOpts(m.options(of)))
	m.all = append(m.all, made)
	return made
}

func (m *metrics) options(of measure.Metric) prometheus.Opts {
	return prometheus.Opts{Name: of.Prometheus(true), Help: of.Help, ConstLabels: m.fixed}
}
