package metrics_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/examples/metrics"
	"github.com/rowlockdb/rowlock/memstore"
)

func ExampleCollector() {
	locks, err := rowlock.New(memstore.New(), nil) // an application has Open
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector(locks))

	if _, err := locks.Lock(context.Background(), "report"); err != nil {
		log.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range families {
		if strings.HasSuffix(f.GetName(), "held") {
			fmt.Println(f.GetName(), f.Metric[0].GetGauge().GetValue())
		}
	}
	// Output: rowlock_held 1
}

func ExampleSpans() {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)).Tracer("app")
	locks, err := rowlock.New(memstore.New(), &rowlock.Config{
		Hooks: metrics.NewSpans(tracer).Hooks(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	ctx, request := tracer.Start(context.Background(), "POST /report")
	err = locks.Do(ctx, "report", func(context.Context, *rowlock.Lock) error { return nil })
	if err != nil {
		log.Fatal(err)
	}
	request.End()
	for _, span := range recorder.Ended() {
		inside := span.Parent().SpanID() == request.SpanContext().SpanID()
		fmt.Println(span.Name(), inside)
	}
	// Output:
	// rowlock wait true
	// rowlock hold true
	// POST /report false
}
