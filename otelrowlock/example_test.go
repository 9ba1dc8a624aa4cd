package otelrowlock_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/otelrowlock"
)

func Example() {
	ctx := context.Background()
	reader, recorder := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	telemetry, err := otelrowlock.New(otelrowlock.Config{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)),
		KeyClass: func(key string) string {
			class, _, _ := strings.Cut(key, "/")
			return class
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer telemetry.Close()
	own := rowlock.Hooks{} // the application's
	locks, err := rowlock.New(memstore.New(), &rowlock.Config{Hooks: telemetry.Hooks().Then(own)})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	if err := telemetry.Observe(locks); err != nil {
		log.Fatal(err)
	}

	err = locks.Do(ctx, "order/4711", func(context.Context, *rowlock.Lock) error { return nil })
	if err != nil {
		log.Fatal(err)
	}

	for _, span := range recorder.Ended() {
		fmt.Println(span.Name(), span.Attributes()[0].Value.AsString(), len(span.Links()))
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		log.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "rowlock.lock.acquired" {
			fmt.Println(m.Name, sum.DataPoints[0].Value)
		}
	}
	// Output:
	// rowlock wait order 0
	// rowlock hold order 1
	// rowlock.lock.acquired 1
}
