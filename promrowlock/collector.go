package promrowlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/measure"
)

// Config configures a Collector. The zero value is ready.
type Config struct {
	// Name is the label rowlock_client_name of all metrics. A registry with the collectors of
	// several clients needs another name for each: otherwise it refuses the second. Empty means no
	// label.
	Name string
	// KeyClass returns the class of a key, as "order" for "order/4711". It becomes the label
	// rowlock_key_class of the histograms; "" means none. It is called at each event, from many
	// goroutines, and must return at once. Of more than a hundred classes the later ones are
	// "_other", as are keys at which it panics. What is not UTF-8 is replaced by U+FFFD, and a class
	// is cut to 128 bytes.
	KeyClass func(key string) string
	// Exemplar returns the labels of an exemplar, as trace_id of the span in ctx, or nil for none.
	// ctx is that of the hook: the call's for a wait, and that of Unlock for a hold. Labels that
	// Prometheus refuses are left out: together they have at most 128 characters. There is no
	// exemplar if it panics.
	Exemplar func(ctx context.Context) prometheus.Labels
}

// Collector has the metrics of one client. Register it with a prometheus.Registerer.
type Collector struct {
	client  atomic.Pointer[rowlock.Client]
	made    *metrics
	classes *measure.Classes[*observers]
	passed  *measure.HandOvers[struct{}]
	sample  func(ctx context.Context) prometheus.Labels
	numbers []number
}

// number is one of rowlock.Stats under its name here.
type number struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(s *rowlock.Stats) int64
}

// New returns a collector for one client. A Name that is not UTF-8 is an error.
func New(cfg Config) (*Collector, error) {
	if !utf8.ValidString(cfg.Name) {
		return nil, fmt.Errorf("rowlock: collector: Name %q is not UTF-8", cfg.Name)
	}
	var fixed prometheus.Labels
	if cfg.Name != "" {
		fixed = prometheus.Labels{measure.Label(measure.Client): cfg.Name}
	}
	c := &Collector{
		made: newMetrics(fixed), passed: measure.NewHandOvers[struct{}](), sample: cfg.Exemplar,
	}
	c.classes = measure.NewClasses(cfg.KeyClass, c.made.of)
	for _, n := range measure.Numbers {
		kind := prometheus.CounterValue
		if n.Gauge {
			kind = prometheus.GaugeValue
		}
		desc := prometheus.NewDesc(n.Prometheus(!n.Gauge), n.Help, nil, fixed)
		c.numbers = append(c.numbers, number{desc, kind, n.Of})
	}
	return c, nil
}

// Observe has the client's Stats read at each scrape. The client must have the Hooks of c. A second
// client is an error: each has a Collector of its own.
func (c *Collector) Observe(client *rowlock.Client) error {
	if client == nil {
		return errors.New("rowlock: collector: the client is nil: call Observe after Open or New")
	}
	if !c.client.CompareAndSwap(nil, client) {
		return errors.New(
			"rowlock: collector: observes a client already: call New for each client, with a Name")
	}
	return nil
}

// Describe names all metrics.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, n := range c.numbers {
		to <- n.desc
	}
	for _, m := range c.made.all {
		m.Describe(to)
	}
}

// Collect reads them. Before Observe those of rowlock.Stats are missing.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	if client := c.client.Load(); client != nil {
		s := client.Stats()
		for _, n := range c.numbers {
			to <- prometheus.MustNewConstMetric(n.desc, n.kind, float64(n.of(&s)))
		}
	}
	for _, m := range c.made.all {
		m.Collect(to)
	}
}
