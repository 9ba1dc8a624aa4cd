package main

import (
	"context"
	"errors"
	"log/slog"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/otelrowlock"
)

// field is a client that tells nobody anything, one with a trace, and one with OpenTelemetry's
// metrics.
type field struct {
	plain, traced, measured *rowlock.Client
	telemetry               *otelrowlock.Telemetry
}

// opener opens a client on what is measured.
type opener func(cfg *rowlock.Config) (*rowlock.Client, error)

func newField(open opener) (f *field, err error) {
	f = &field{}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	quiet := rowlock.Config{
		Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	}
	if f.plain, err = open(&quiet); err != nil {
		return f, err
	}
	traced := quiet
	traced.Trace.On = true
	if f.traced, err = open(&traced); err != nil {
		return f, err
	}
	return f, f.measure(open, quiet)
}

// measure opens the client with metrics. Its spans are off: what one costs is the exporter's.
func (f *field) measure(open opener, cfg rowlock.Config) (err error) {
	f.telemetry, err = otelrowlock.New(otelrowlock.Config{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		TracerProvider: noop.NewTracerProvider(),
	})
	if err != nil {
		return err
	}
	cfg.Hooks = f.telemetry.Hooks()
	if f.measured, err = open(&cfg); err != nil {
		return err
	}
	return f.telemetry.Observe(f.measured)
}

func (f *field) clients() (all []*rowlock.Client) {
	for _, c := range []*rowlock.Client{f.plain, f.traced, f.measured} {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

func (f *field) close() (err error) {
	if f.telemetry != nil {
		err = f.telemetry.Close()
	}
	for _, c := range f.clients() {
		err = errors.Join(err, c.Close())
	}
	return err
}

// sent is how many statements all clients have sent.
func (f *field) sent() (n int64) {
	for _, c := range f.clients() {
		n += c.Stats().Statements
	}
	return n
}

// contenders lock the same keys in turns.
func (f *field) contenders() []race.Contender {
	return []race.Contender{
		{Name: "plain", Series: 't', Pair: pair(f.plain)},
		{Name: "with a trace", Series: 't', Target: 0.95, Pair: pair(f.traced)},
		{Name: "with metrics", Series: 't', Target: 0.95, Pair: pair(f.measured)},
	}
}

func pair(c *rowlock.Client) func(context.Context, string) error {
	return func(ctx context.Context, key string) error {
		l, err := c.Lock(ctx, key)
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
}
