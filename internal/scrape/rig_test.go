package scrape

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/otelrowlock"
	"github.com/rowlockdb/rowlock/promrowlock"
)

// families are a scrape by the names of the metrics.
type families map[string]*dto.MetricFamily

// pages are the ways to a scrape. Each has a client, whose locks are on its page.
var pages = map[string]func(testing.TB, func(key string) string) (*rowlock.Client, *prometheus.Registry){
	"promrowlock": byCollector,
	"otelrowlock": byOTel,
}

func byCollector(tb testing.TB, class func(string) string) (*rowlock.Client, *prometheus.Registry) {
	tb.Helper()
	c, err := promrowlock.New(promrowlock.Config{
		Name: "main", KeyClass: class, Exemplar: func(ctx context.Context) prometheus.Labels {
			if span := trace.SpanContextFromContext(ctx); span.IsSampled() {
				return prometheus.Labels{"trace_id": span.TraceID().String()}
			}
			return nil
		},
	})
	must(tb, err)
	locks := client(tb, c.Hooks())
	must(tb, c.Observe(locks))
	registry := prometheus.NewRegistry()
	must(tb, registry.Register(c))
	return locks, registry
}

func byOTel(tb testing.TB, class func(string) string) (*rowlock.Client, *prometheus.Registry) {
	tb.Helper()
	exporter, registry := exported(tb)
	t, err := otelrowlock.New(otelrowlock.Config{
		Name: "main", KeyClass: class, TracerProvider: noop.NewTracerProvider(),
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)),
	})
	must(tb, err)
	locks := client(tb, t.Hooks())
	must(tb, t.Observe(locks))
	tb.Cleanup(func() { must(tb, t.Close()) })
	return locks, registry
}

// exported returns OpenTelemetry's exporter for Prometheus.
func exported(tb testing.TB) (*otelprom.Exporter, *prometheus.Registry) {
	tb.Helper()
	registry := prometheus.NewRegistry()
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry))
	must(tb, err)
	return exporter, registry
}

func client(tb testing.TB, hooks rowlock.Hooks) *rowlock.Client {
	tb.Helper()
	locks, err := rowlock.New(memstore.New(), &rowlock.Config{Hooks: hooks})
	must(tb, err)
	tb.Cleanup(func() { must(tb, locks.Close()) })
	return locks
}

// scraped asks for a page over HTTP, as Prometheus does.
func scraped(tb testing.TB, registry *prometheus.Registry) families {
	tb.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	found, err := parser.TextToMetricFamilies(strings.NewReader(text(tb, registry)))
	must(tb, err)
	return found
}

func text(tb testing.TB, registry *prometheus.Registry) string {
	tb.Helper()
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true}))
	defer server.Close()
	answer, err := server.Client().Get(server.URL)
	must(tb, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	must(tb, err)
	if answer.StatusCode != http.StatusOK {
		tb.Fatalf("the scrape ended with %s: %s", answer.Status, page)
	}
	return string(page)
}

// ours are the metrics of rowlock.
func (f families) ours() map[string]dto.MetricType {
	ours := make(map[string]dto.MetricType)
	for name, family := range f {
		if strings.HasPrefix(name, "rowlock_") {
			ours[name] = family.GetType()
		}
	}
	return ours
}

// sum adds up a metric's values, or a histogram's counts, whose labels include one.
func (f families) sum(name, label, value string) (sum float64) {
	for _, m := range f[name].GetMetric() {
		for _, l := range m.Label {
			if l.GetName() == label && l.GetValue() == value {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() +
					float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func useOnce(tb testing.TB, locks *rowlock.Client, key string) {
	tb.Helper()
	must(tb, locks.Do(tb.Context(), key, func(context.Context, *rowlock.Lock) error { return nil }))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	must(tb, err)
	return string(text)
}
