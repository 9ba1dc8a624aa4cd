package otelrowlock

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
)

// A program has a variable of each, and makes none where telemetry is off.
func TestAProviderThatIsANilPointerIsTheGlobalOne(t *testing.T) {
	var meters *metric.MeterProvider
	var tracers *trace.TracerProvider
	if _, err := New(Config{MeterProvider: meters, TracerProvider: tracers}); err != nil {
		t.Error(err)
	}
}
