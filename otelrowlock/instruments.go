package otelrowlock

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/measure"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments are what hooks record.
type instruments struct {
	wait, hold, handOver, renewal metric.Float64Histogram

	lost                               map[string]event // by cause
	forced, expired, suspected, skewed event
	evictions
	moves
}

// evictions are of sessions that have the row of an expired key locked.
type evictions struct{ evicted, notEvicted event }

// moves are of keys, between the table and a cluster.
type moves struct{ moved, stayed, recalled event }

// event is a counter with its attributes.
type event struct {
	counter metric.Int64Counter
	options []metric.AddOption
}

func (e event) happened(ctx context.Context) { e.counter.Add(ctx, 1, e.options...) }

// maker makes instruments and keeps what fails.
type maker struct {
	meter  metric.Meter
	client []attribute.KeyValue
	err    error
}

func newInstruments(meter metric.Meter, client []attribute.KeyValue) (*instruments, error) {
	m := &maker{meter: meter, client: client}
	made := &instruments{
		wait: m.histogram(measure.Wait), hold: m.histogram(measure.Hold),
		handOver: m.histogram(measure.HandOver), renewal: m.histogram(measure.Renewal),
		lost: make(map[string]event), forced: m.event(measure.Forced),
		expired: m.event(measure.Expired), suspected: m.event(measure.Suspected),
		skewed:    m.event(measure.Skewed),
		evictions: evictions{m.event(measure.Evicted), m.event(measure.NotEvict)},
		moves: moves{
			m.event(measure.Moved), m.event(measure.Stayed), m.event(measure.Recalled),
		},
	}
	for _, cause := range measure.Causes {
		made.lost[cause] = m.event(measure.Lost, attribute.String(measure.Cause, cause))
	}
	return made, m.err
}

func (m *maker) histogram(of measure.Metric) metric.Float64Histogram {
	made, err := m.meter.Float64Histogram(of.Name, metric.WithUnit(of.Unit),
		metric.WithDescription(of.Help), metric.WithExplicitBucketBoundaries(measure.Bounds...))
	m.err = errors.Join(m.err, err)
	return made
}

// event makes a counter that is there, with 0, before anything has happened.
func (m *maker) event(of measure.Metric, more ...attribute.KeyValue) event {
	made, err := m.meter.Int64Counter(
		of.Name, metric.WithUnit(of.Unit), metric.WithDescription(of.Help))
	m.err = errors.Join(m.err, err)
	with := attribute.NewSet(append(more, m.client...)...)
	e := event{made, []metric.AddOption{metric.WithAttributeSet(with)}}
	if err == nil {
		made.Add(context.Background(), 0, e.options...)
	}
	return e
}

// observe makes the instruments of rowlock.Stats, which are read together.
func observe(
	meter metric.Meter, client *rowlock.Client, with []attribute.KeyValue,
) (metric.Registration, error) {
	made := make([]metric.Int64Observable, len(measure.Numbers))
	all := make([]metric.Observable, len(measure.Numbers))
	for i, n := range measure.Numbers {
		one, err := observable(meter, n)
		if err != nil {
			return nil, err
		}
		made[i], all[i] = one, one
	}
	set := metric.WithAttributeSet(attribute.NewSet(with...))
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := client.Stats()
		for i, n := range measure.Numbers {
			o.ObserveInt64(made[i], n.Of(&s), set)
		}
		return nil
	}, all...)
}

func observable(meter metric.Meter, n measure.Number) (metric.Int64Observable, error) {
	unit, help := metric.WithUnit(n.Unit), metric.WithDescription(n.Help)
	if n.Gauge {
		return meter.Int64ObservableUpDownCounter(n.Name, unit, help)
	}
	return meter.Int64ObservableCounter(n.Name, unit, help)
}
