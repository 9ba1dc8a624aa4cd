package otelrowlock

import (
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/measure"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the instrumentation's name.
const scope = "github.com/rowlockdb/rowlock/otelrowlock"

// Config configures a Telemetry. The zero value is ready.
type Config struct {
	// MeterProvider and TracerProvider are the global ones of package otel if they are nil. A
	// noop.TracerProvider turns spans off.
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	// Name is the attribute rowlock.client.name of all metrics and spans. A process with several
	// clients gives each another name: without one their numbers are mixed. Empty means no
	// attribute.
	Name string
	// KeyClass returns the class of a key, as "order" for "order/4711". It becomes the attribute
	// rowlock.key.class of histograms and spans; "" means none. It is called at each event, from many
	// goroutines, and must return at once. Of more than a hundred classes the later ones are
	// "_other", as are keys at which it panics. What is not UTF-8 is replaced by U+FFFD, and a class
	// is cut to 128 bytes. A key that is returned as its own class stands in every trace and metric
	// that leaves the process.
	KeyClass func(key string) string
}

// Telemetry tells OpenTelemetry of one client.
type Telemetry struct {
	tracer  trace.Tracer
	meter   metric.Meter
	client  []attribute.KeyValue
	made    *instruments
	classes *measure.Classes[*class]
	passed  *measure.HandOvers[trace.SpanContext]
	holds   holds // that are recorded
	// untraced: no span will ever be recorded, so that none is begun.
	untraced bool

	mu       sync.Mutex
	observed metric.Registration
}

// class is what belongs to a class of keys.
type class struct {
	spans  trace.SpanStartEventOption
	record []metric.RecordOption
}

// New returns telemetry for one client. It refuses a Name that is not UTF-8, and passes on the
// error of a MeterProvider that refuses an instrument.
func New(cfg Config) (*Telemetry, error) {
	if !utf8.ValidString(cfg.Name) {
		return nil, fmt.Errorf("rowlock: telemetry: Name %q is not UTF-8", cfg.Name)
	}
	if isnil.Value(cfg.MeterProvider) {
		cfg.MeterProvider = otel.GetMeterProvider()
	}
	if isnil.Value(cfg.TracerProvider) {
		cfg.TracerProvider = otel.GetTracerProvider()
	}
	t := &Telemetry{
		tracer: cfg.TracerProvider.Tracer(scope), meter: cfg.MeterProvider.Meter(scope),
		passed: measure.NewHandOvers[trace.SpanContext](),
	}
	_, t.untraced = cfg.TracerProvider.(noop.TracerProvider)
	if cfg.Name != "" {
		t.client = []attribute.KeyValue{attribute.String(measure.Client, cfg.Name)}
	}
	t.classes = measure.NewClasses(cfg.KeyClass, t.newClass)
	made, err := newInstruments(t.meter, t.client)
	if err != nil {
		return nil, fmt.Errorf("rowlock: telemetry: the meter refuses an instrument: %w", err)
	}
	t.made = made
	return t, nil
}

func (t *Telemetry) newClass(name string) *class {
	attributes := t.client
	if name != "" {
		attributes = append(attributes[:len(attributes):len(attributes)],
			attribute.String(measure.Class, name))
	}
	return &class{
		spans:  trace.WithAttributes(attributes...),
		record: []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))},
	}
}

// Observe has the client's Stats read whenever metrics are collected, until Close. The client must
// have the Hooks of t. A second client is an error: each has a Telemetry of its own.
func (t *Telemetry) Observe(client *rowlock.Client) error {
	if client == nil {
		return errors.New("rowlock: telemetry: the client is nil: call Observe after Open or New")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.observed != nil {
		return errors.New(
			"rowlock: telemetry: observes a client already: call New for each client, with a Name")
	}
	observed, err := observe(t.meter, client, t.client)
	if err != nil {
		return fmt.Errorf("rowlock: telemetry: the meter refuses to read the client: %w", err)
	}
	t.observed = observed
	return nil
}

// Close ends what Observe began, so that the client can be collected as garbage. Metrics that are
// to include the client's end are collected before. A second call does nothing.
func (t *Telemetry) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.observed == nil {
		return nil
	}
	err := t.observed.Unregister()
	t.observed = nil
	return err
}
