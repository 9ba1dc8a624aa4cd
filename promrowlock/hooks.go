package promrowlock

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/measure"
	"github.com/rowlockdb/rowlock/lease"
)

// Hooks are for rowlock.Config.Hooks of the one client. An application that has hooks of its own
// keeps them: collector.Hooks().Then(own).
func (c *Collector) Hooks() rowlock.Hooks {
	m := c.made
	return rowlock.Hooks{
		Acquired: c.acquired, Released: c.released,
		Releasing: func(_ context.Context, key string, token lease.Token) {
			c.passed.Releasing(key, token, time.Now(), struct{}{})
		},
		Expired:   func(context.Context, string, rowlock.Token, *rowlock.HeldError) { m.expired.Inc() },
		Lost:      c.lost,
		Forced:    func(context.Context, lease.Forced) { m.forced.Inc() },
		Suspected: func(context.Context, rowlock.Suspicion) { m.suspected.Inc() },
		Renewed: func(_ context.Context, _ int, took time.Duration) {
			m.renewal.Observe(took.Seconds())
		},
		Evicted: c.evicted,
		Skewed:  func(context.Context, time.Duration) { m.skewed.Inc() },
	}
}

func (c *Collector) acquired(ctx context.Context, key string, token lease.Token, waited time.Duration) {
	now, class := time.Now(), c.classes.Of(key)
	c.record(ctx, class.wait, waited)
	if at, _, ok := c.passed.Acquired(key, token, now.Add(-waited)); ok {
		c.record(ctx, class.handOver, now.Sub(at))
	}
}

func (c *Collector) released(ctx context.Context, key string, _ rowlock.Token, held time.Duration) {
	c.record(ctx, c.classes.Of(key).hold, held)
}

func (c *Collector) lost(_ context.Context, _ string, _ rowlock.Token, cause error) {
	c.made.lost.WithLabelValues(measure.CauseOf(cause)).Inc()
}

func (c *Collector) evicted(_ context.Context, _ string, _ int64, err error) {
	if err != nil {
		c.made.notEvicted.Inc()
		return
	}
	c.made.evicted.Inc()
}

// record adds a time to a histogram, with an exemplar if there is one.
func (c *Collector) record(ctx context.Context, to prometheus.Observer, took time.Duration) {
	if c.sample != nil {
		if labels := c.labels(ctx); len(labels) > 0 && fits(labels) {
			to.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), labels)
			return
		}
	}
	to.Observe(took.Seconds())
}

// labels are those of an exemplar, or none if the application's function panics.
func (c *Collector) labels(ctx context.Context) (labels prometheus.Labels) {
	defer func() {
		if recover() != nil {
			labels = nil
		}
	}()
	return c.sample(ctx)
}

// fits reports whether Prometheus takes the labels: it panics at those of an exemplar that it does
// not, in a hook that must not panic.
func fits(labels prometheus.Labels) bool {
	runes := 0
	for name, value := range labels {
		if !plain(name) || !utf8.ValidString(value) {
			return false
		}
		runes += len(name) + utf8.RuneCountInString(value)
	}
	return runes <= prometheus.ExemplarMaxRunes
}

// plain reports whether a name is one that every version of Prometheus takes. Names that begin with
// two underscores belong to Prometheus.
func plain(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && !strings.HasPrefix(name, "__")
}

// Moved is for paxosbridge.Config.Hooks.
func (c *Collector) Moved(string, int, int64, string) { c.made.moved.Inc() }

// Stayed is for paxosbridge.Config.Hooks.
func (c *Collector) Stayed(string, error) { c.made.stayed.Inc() }

// Recalled is for paxosbridge.Config.Hooks.
func (c *Collector) Recalled(string, int64) { c.made.recalled.Inc() }
