package otelrowlock_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/wire"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/otelrowlock"
)

// Dashboards and searches name spans and their attributes. A token is a string among them.
func TestSpansAreAsReleased(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	telemetry, err := otelrowlock.New(otelrowlock.Config{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)),
		Name:           "orders",
		KeyClass:       func(string) string { return "order" },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer telemetry.Close()
	locks, err := rowlock.New(memstore.New(), &rowlock.Config{Hooks: telemetry.Hooks()})
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	err = locks.Do(t.Context(), "k", func(ctx context.Context, _ *rowlock.Lock) error {
		_, err := locks.TryLock(ctx, "k")
		if !errors.Is(err, rowlock.ErrHeld) && err == nil {
			t.Error("a key that is held was granted")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	f := wire.New("Spans: their names, and their attributes in JSON.", "dashboards and searches", "spans:")
	for _, span := range recorder.Ended() {
		attributes := make(map[string]any)
		for _, a := range span.Attributes() {
			attributes[string(a.Key)] = a.Value.AsInterface()
		}
		text, err := json.Marshal(attributes)
		if err != nil {
			t.Fatal(err)
		}
		f.JSON(t, span.Name(), string(text))
	}
	f.Match(t, "../testdata/wire/spans.txt")
}
