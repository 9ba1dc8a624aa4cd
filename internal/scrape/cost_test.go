package scrape

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/otelrowlock"
	"github.com/rowlockdb/rowlock/promrowlock"
	"github.com/rowlockdb/rowlock/schema"
)

const (
	workers = 64
	pairs   = 10 // of lock and unlock, of each worker in a round
)

// contenders are kinds of telemetry. The second without any shows how far chance goes.
var contenders = []struct {
	name  string
	hooks func(*testing.B) rowlock.Hooks
}{
	{"off", func(*testing.B) rowlock.Hooks { return rowlock.Hooks{} }},
	{"off-again", func(*testing.B) rowlock.Hooks { return rowlock.Hooks{} }},
	{"promrowlock", collectorHooks},
	{"otelrowlock", func(b *testing.B) rowlock.Hooks { return otelHooks(b, noop.NewTracerProvider()) }},
	{"otel-1%-traced", func(b *testing.B) rowlock.Hooks { return otelHooks(b, traced(.01)) }},
	{"otel-traced", func(b *testing.B) rowlock.Hooks { return otelHooks(b, traced(1)) }},
}

// BenchmarkTelemetry runs short rounds of all contenders in turn, each time another one first, so
// that a busy machine slows all. NAME/off is the median of the ratios of their pairs per second.
//
//	scripts/with-servers postgres -- \
//		go test ./internal/scrape -run '^$' -bench Telemetry -benchtime 100x
func BenchmarkTelemetry(b *testing.B) {
	for store, open := range map[string]func(*testing.B) func(rowlock.Hooks) *rowlock.Client{
		"memory": func(b *testing.B) func(rowlock.Hooks) *rowlock.Client {
			return func(h rowlock.Hooks) *rowlock.Client { return client(b, h) }
		},
		"sqlite": onSQLite, "postgres": onPostgres,
	} {
		b.Run(store, func(b *testing.B) { compare(b, open(b)) })
	}
}

func compare(b *testing.B, open func(rowlock.Hooks) *rowlock.Client) {
	b.Helper()
	clients := make([]*rowlock.Client, len(contenders))
	for i, c := range contenders {
		clients[i] = open(c.hooks(b))
		round(b, clients[i])
	}
	ratios := make([][]float64, len(contenders))
	took := make([]float64, len(contenders))
	first := 0
	for b.Loop() {
		for i := range clients {
			i = (i + first) % len(clients)
			took[i] = round(b, clients[i]).Seconds()
		}
		first++
		for i := range clients {
			ratios[i] = append(ratios[i], took[0]/took[i])
		}
	}
	for i, c := range contenders[1:] {
		slices.Sort(ratios[i+1])
		b.ReportMetric(ratios[i+1][len(ratios[i+1])/2], c.name+"/off")
	}
}

// round is how long all workers take, each with a key of its own.
func round(b *testing.B, locks *rowlock.Client) time.Duration {
	b.Helper()
	var all sync.WaitGroup
	began := time.Now()
	for i := range workers {
		all.Go(func() {
			key := fmt.Sprintf("order/%d", i)
			for range pairs {
				l, err := locks.Lock(context.Background(), key)
				if err == nil {
					err = l.Unlock(context.Background())
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}

func collectorHooks(b *testing.B) rowlock.Hooks {
	b.Helper()
	c, err := promrowlock.New(promrowlock.Config{KeyClass: func(string) string { return "order" }})
	must(b, err)
	return c.Hooks()
}

func otelHooks(b *testing.B, tracer trace.TracerProvider) rowlock.Hooks {
	b.Helper()
	t, err := otelrowlock.New(otelrowlock.Config{
		MeterProvider:  sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader())),
		TracerProvider: tracer, KeyClass: func(string) string { return "order" },
	})
	must(b, err)
	return t.Hooks()
}

// traced samples a part of the traces, and drops what a batcher would send.
func traced(part float64) trace.TracerProvider {
	return sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(part))),
		sdktrace.WithSpanProcessor(nowhere{}))
}

type nowhere struct{ sdktrace.SpanProcessor }

func (nowhere) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (nowhere) OnEnd(sdktrace.ReadOnlySpan)                     {}

func onSQLite(b *testing.B) func(rowlock.Hooks) *rowlock.Client {
	b.Helper()
	db, err := sqlite.Open(filepath.Join(b.TempDir(), "locks.db"))
	must(b, err)
	return on(b, db, sqlite.New())
}

func onPostgres(b *testing.B) func(rowlock.Hooks) *rowlock.Client {
	b.Helper()
	server := os.Getenv("ROWLOCK_TEST_POSTGRES")
	if server == "" {
		b.Skip("SKIPPED, POSTGRES NOT MEASURED: ROWLOCK_TEST_POSTGRES is not set")
	}
	db, err := sql.Open("pgx", server)
	must(b, err)
	return on(b, db, postgres.New())
}

func on(b *testing.B, db *sql.DB, d dialect.Dialect) func(rowlock.Hooks) *rowlock.Client {
	b.Helper()
	b.Cleanup(func() { must(b, db.Close()) })
	must(b, schema.Migrate(context.Background(), db, d))
	return func(hooks rowlock.Hooks) *rowlock.Client {
		locks, err := rowlock.Open(db, d, &rowlock.Config{Hooks: hooks})
		must(b, err)
		b.Cleanup(func() { must(b, locks.Close()) })
		return locks
	}
}
