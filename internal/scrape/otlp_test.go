package scrape

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	metricsv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricpb "go.opentelemetry.io/proto/otlp/metrics/v1"
	spanpb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/otelrowlock"
)

// receiver is an OTLP receiver over HTTP.
type receiver struct {
	url string

	mu      sync.Mutex
	bodies  []string
	metrics map[string]*metricpb.Metric
	spans   []*spanpb.Span
}

func listen(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{metrics: make(map[string]*metricpb.Metric)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/metrics", r.heardMetrics)
	mux.HandleFunc("POST /v1/traces", r.heardSpans)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) heardMetrics(w http.ResponseWriter, from *http.Request) {
	var got metricsv1.ExportMetricsServiceRequest
	if !r.heard(w, from, &got) {
		return
	}
	for _, resource := range got.ResourceMetrics {
		for _, scope := range resource.ScopeMetrics {
			for _, m := range scope.Metrics {
				r.metrics[m.Name] = m
			}
		}
	}
	r.mu.Unlock()
}

func (r *receiver) heardSpans(w http.ResponseWriter, from *http.Request) {
	var got tracev1.ExportTraceServiceRequest
	if !r.heard(w, from, &got) {
		return
	}
	for _, resource := range got.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
	r.mu.Unlock()
}

// heard reads a request, and leaves r locked if it could.
func (r *receiver) heard(w http.ResponseWriter, from *http.Request, into proto.Message) bool {
	body, err := io.ReadAll(from.Body)
	if err == nil {
		err = proto.Unmarshal(body, into)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return false
	}
	r.mu.Lock()
	r.bodies = append(r.bodies, string(body))
	w.Header().Set("Content-Type", "application/x-protobuf")
	return true
}

func TestAReceiverHearsSpansMetricsAndExemplars(t *testing.T) {
	r := listen(t)
	metrics, err := otlpmetrichttp.New(t.Context(), otlpmetrichttp.WithEndpointURL(r.url+"/v1/metrics"))
	must(t, err)
	spans, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(r.url+"/v1/traces"))
	must(t, err)
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics)))
	tracer := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans))
	telemetry, err := otelrowlock.New(otelrowlock.Config{
		MeterProvider: meters, TracerProvider: tracer, Name: "main",
	})
	must(t, err)
	locks := client(t, telemetry.Hooks())
	must(t, telemetry.Observe(locks))

	ctx, request := tracer.Tracer("app").Start(t.Context(), "POST /report")
	first, err := locks.Lock(ctx, "patient-4711")
	must(t, err)
	waiting, done := make(chan struct{}, 10), make(chan error)
	go func() {
		done <- locks.Do(ctx, "patient-4711", func(context.Context, *rowlock.Lock) error { return nil },
			rowlock.OnWait(func(rowlock.Waiting) { waiting <- struct{}{} }))
	}()
	<-waiting
	must(t, first.Unlock(ctx))
	must(t, <-done)
	request.End()
	must(t, tracer.Shutdown(t.Context()))
	must(t, meters.Shutdown(t.Context()))
	must(t, telemetry.Close())

	r.mu.Lock()
	defer r.mu.Unlock()
	r.wantSpans(t)
	r.wantMetrics(t)
	for _, body := range r.bodies {
		if strings.Contains(body, "4711") {
			t.Error("a key has left the process")
		}
	}
}

// wantSpans expects those of two locks, the second of which waited for the first.
func (r *receiver) wantSpans(t *testing.T) {
	t.Helper()
	byName := make(map[string][]*spanpb.Span)
	for _, s := range r.spans {
		byName[s.Name] = append(byName[s.Name], s)
	}
	if len(byName["rowlock wait"]) != 2 || len(byName["rowlock hold"]) != 2 ||
		len(byName["rowlock handover"]) != 1 || len(byName["POST /report"]) != 1 {
		t.Fatalf("heard spans %v", byName)
	}
	parent := byName["POST /report"][0]
	for _, s := range r.spans {
		if s != parent && string(s.ParentSpanId) != string(parent.SpanId) {
			t.Errorf("%s is not a child of the call's span", s.Name)
		}
	}
	linked := func(from, to *spanpb.Span) bool {
		return len(from.Links) == 1 && string(from.Links[0].SpanId) == string(to.SpanId)
	}
	for _, hold := range byName["rowlock hold"] {
		if !slices.ContainsFunc(byName["rowlock wait"], func(w *spanpb.Span) bool { return linked(hold, w) }) {
			t.Error("a hold has no link to its wait")
		}
	}
	passed, first, second := byName["rowlock handover"][0], byName["rowlock hold"][0], byName["rowlock hold"][1]
	if second.StartTimeUnixNano < first.StartTimeUnixNano {
		first, second = second, first
	}
	if !linked(passed, first) || passed.StartTimeUnixNano < first.StartTimeUnixNano ||
		passed.EndTimeUnixNano != second.StartTimeUnixNano {
		t.Errorf("the hand-over is not from one hold to the other: %v, %v, %v", first, passed, second)
	}
}

func (r *receiver) wantMetrics(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"rowlock.lock.wait.duration", "rowlock.lock.hold.duration", "rowlock.lock.handover.duration",
	} {
		points := r.metrics[name].GetHistogram().GetDataPoints()
		if len(points) != 1 || len(points[0].Exemplars) == 0 || len(points[0].Exemplars[0].SpanId) == 0 {
			t.Errorf("%s has no exemplar with a span: %v", name, points)
		}
	}
	acquired := r.metrics["rowlock.lock.acquired"].GetSum()
	if !acquired.GetIsMonotonic() || acquired.GetDataPoints()[0].GetAsInt() != 2 {
		t.Errorf("rowlock.lock.acquired is %v, want 2", acquired)
	}
	if held := r.metrics["rowlock.lock.held"].GetSum(); held.GetIsMonotonic() {
		t.Error("rowlock.lock.held is a counter, want one that goes down too")
	}
}
