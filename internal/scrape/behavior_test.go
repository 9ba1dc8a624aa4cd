package scrape

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/otelrowlock"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/promrowlock"
)

// recorded returns a client whose spans are kept.
func recorded(t *testing.T, cfg otelrowlock.Config) (*rowlock.Client, *tracetest.SpanRecorder) {
	t.Helper()
	spans := tracetest.NewSpanRecorder()
	cfg.MeterProvider = sdkmetric.NewMeterProvider()
	cfg.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	telemetry, err := otelrowlock.New(cfg)
	must(t, err)
	return client(t, telemetry.Hooks()), spans
}

// Readers have one token, and each a span of its own.
func TestEachReadersSpanEnds(t *testing.T) {
	locks, spans := recorded(t, otelrowlock.Config{})
	var all []*rowlock.Lock
	for range 5 {
		l, err := locks.RLock(t.Context(), "k")
		must(t, err)
		all = append(all, l)
	}
	for _, l := range all {
		must(t, l.Unlock(t.Context()))
	}
	if begun, ended := len(spans.Started()), len(spans.Ended()); begun != 10 || ended != 10 {
		t.Errorf("%d spans have begun and %d ended, want 10", begun, ended)
	}
}

func TestALossIsAnErrorOfTheHold(t *testing.T) {
	locks, spans := recorded(t, otelrowlock.Config{})
	l, err := locks.Lock(t.Context(), "patient-4711", rowlock.MaxHold(100*time.Millisecond))
	must(t, err)
	<-l.Context().Done()
	must(t, locks.Close())
	ended := spans.Ended()
	hold := ended[len(ended)-1]
	if hold.Name() != "rowlock hold" || hold.Status().Code != codes.Error {
		t.Errorf("the last span is %s with %v, want a hold that failed", hold.Name(), hold.Status())
	}
	if !strings.Contains(hold.Status().Description, "max_hold") ||
		strings.Contains(hold.Status().Description, "4711") {
		t.Errorf("its status is %q", hold.Status().Description)
	}
}

// One of several readers is lost: its own span says so, and not that of another one.
func TestALossIsThatOfItsReader(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	telemetry, err := otelrowlock.New(otelrowlock.Config{
		MeterProvider: sdkmetric.NewMeterProvider(), TracerProvider: tracers,
	})
	must(t, err)
	locks := client(t, telemetry.Hooks())
	stays, one := tracers.Tracer("").Start(t.Context(), "stays")
	goes, other := tracers.Tracer("").Start(t.Context(), "goes")
	first, err := locks.RLock(stays, "k")
	must(t, err)
	second, err := locks.RLock(goes, "k", rowlock.MaxHold(100*time.Millisecond))
	must(t, err)
	<-second.Context().Done()
	must(t, first.Unlock(t.Context()))
	must(t, locks.Close())
	for _, span := range spans.Ended() {
		if span.Name() != "rowlock hold" {
			continue
		}
		want := codes.Unset
		if span.Parent().SpanID() == other.SpanContext().SpanID() {
			want = codes.Error
		}
		if got := span.Status().Code; got != want {
			t.Errorf("the hold of %s has %v, want %v (stays is %s)", span.Parent().SpanID(), got, want,
				one.SpanContext().SpanID())
		}
	}
	one.End()
	other.End()
}

// What a sampler does not take costs no memory: no hold is kept for it.
func TestASpanThatIsNotSampledLeavesNothing(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	telemetry, err := otelrowlock.New(otelrowlock.Config{
		MeterProvider: sdkmetric.NewMeterProvider(),
		TracerProvider: sdktrace.NewTracerProvider(
			sdktrace.WithSampler(sdktrace.NeverSample()), sdktrace.WithSpanProcessor(spans)),
	})
	must(t, err)
	useOnce(t, client(t, telemetry.Hooks()), "k")
	if n := len(spans.Started()); n != 0 {
		t.Errorf("%d spans, want none", n)
	}
}

func TestAnApplicationKeepsItsOwnHooks(t *testing.T) {
	c, err := promrowlock.New(promrowlock.Config{})
	must(t, err)
	told := 0
	own := rowlock.Hooks{
		Acquired: func(context.Context, string, rowlock.Token, time.Duration) { told++ },
		Released: func(context.Context, string, rowlock.Token, time.Duration) { told++ },
	}
	locks := client(t, c.Hooks().Then(own))
	useOnce(t, locks, "k")
	if told != 2 {
		t.Errorf("the application's hooks were called %d times, want 2", told)
	}
}

func TestMovesOfABridgeAreCounted(t *testing.T) {
	c, err := promrowlock.New(promrowlock.Config{})
	must(t, err)
	telemetry, err := otelrowlock.New(otelrowlock.Config{})
	must(t, err)
	for _, hooks := range []paxosbridge.Hooks{
		{Moved: c.Moved, Stayed: c.Stayed, Recalled: c.Recalled},
		{Moved: telemetry.Moved, Stayed: telemetry.Stayed, Recalled: telemetry.Recalled},
	} {
		hooks.Moved("k", 1, 2, "hot")
		hooks.Stayed("k", errors.New("down"))
		hooks.Recalled("k", 4)
	}
	registry := prometheus.NewRegistry()
	must(t, registry.Register(c))
	got := scraped(t, registry)
	for _, name := range []string{"moved", "stayed", "recalled"} {
		m := got["rowlock_key_"+name+"_total"].GetMetric()
		if len(m) != 1 || m[0].GetCounter().GetValue() != 1 {
			t.Errorf("%s is %v, want 1", name, m)
		}
	}
}

func TestAnExemplarIsOnThePageAndABadOneIsNot(t *testing.T) {
	for labels, want := range map[*prometheus.Labels]bool{
		{"trace_id": "4bf92f3577b34da6"}:       true,
		{"trace_id": strings.Repeat("x", 200)}: false,
		{"trace_id": "\xff"}:                   false,
		{"no name": "x"}:                       false,
		{"__name__": "x"}:                      false,
	} {
		c, err := promrowlock.New(promrowlock.Config{
			Exemplar: func(context.Context) prometheus.Labels { return *labels },
		})
		must(t, err)
		useOnce(t, client(t, c.Hooks()), "k")
		registry := prometheus.NewRegistry()
		must(t, registry.Register(c))
		if got := strings.Contains(openMetrics(t, registry), "# {"); got != want {
			t.Errorf("an exemplar of %v is on the page: %t, want %t", *labels, got, want)
		}
	}
}

// openMetrics is the page in the format that has exemplars.
func openMetrics(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	server := httptest.NewServer(
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	defer server.Close()
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	must(t, err)
	ask.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	answer, err := server.Client().Do(ask)
	must(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	must(t, err)
	return string(page)
}

func TestBadInputIsRefused(t *testing.T) {
	if _, err := promrowlock.New(promrowlock.Config{Name: "\xff"}); err == nil {
		t.Error("a Name that is not UTF-8 was taken")
	}
	if _, err := otelrowlock.New(otelrowlock.Config{Name: "\xff"}); err == nil {
		t.Error("a Name that is not UTF-8 was taken")
	}
	c, err := promrowlock.New(promrowlock.Config{})
	must(t, err)
	telemetry, err := otelrowlock.New(otelrowlock.Config{})
	must(t, err)
	locks := client(t, rowlock.Hooks{})
	for _, observe := range []func(*rowlock.Client) error{c.Observe, telemetry.Observe} {
		if err := observe(nil); err == nil {
			t.Error("a nil client was taken")
		}
		must(t, observe(locks))
		if err := observe(locks); err == nil {
			t.Error("a second client was taken")
		}
	}
	must(t, telemetry.Close())
	must(t, telemetry.Close())
}
