package scrape

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/otelrowlock"
	"github.com/rowlockdb/rowlock/promrowlock"
)

// Each waiter's hand-over is told, however soon its grant follows the release.
func TestEachHandOverInAProcessIsTold(t *testing.T) {
	const pairs = 50
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			locks, registry := page(t, nil)
			first, err := locks.Lock(t.Context(), "k")
			must(t, err)
			waiting, done := make(chan struct{}, pairs), make(chan error, pairs)
			for range pairs {
				go func() {
					var once sync.Once
					done <- locks.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error { return nil },
						rowlock.OnWait(func(rowlock.Waiting) { once.Do(func() { waiting <- struct{}{} }) }))
				}()
			}
			for range pairs {
				<-waiting
			}
			must(t, first.Unlock(t.Context()))
			for range pairs {
				must(t, <-done)
			}
			got := scraped(t, registry)
			if n := got.sum("rowlock_lock_handover_duration_seconds", named, "main"); n != pairs {
				t.Errorf("%g hand-overs, want %d", n, pairs)
			}
		})
	}
}

// MinHold leaves the key locked: the time until its end is no hand-over.
func TestAKeyThatMinHoldKeepsIsNotHandedOverAtUnlock(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			locks, registry := page(t, nil)
			l, err := locks.Lock(t.Context(), "k", rowlock.MinHold(200*time.Millisecond))
			must(t, err)
			waiting, done := make(chan struct{}, 100), make(chan error)
			go func() {
				done <- locks.Do(t.Context(), "k", func(context.Context, *rowlock.Lock) error { return nil },
					rowlock.OnWait(func(rowlock.Waiting) { waiting <- struct{}{} }))
			}()
			<-waiting
			must(t, l.Unlock(t.Context()))
			must(t, <-done)
			if n := scraped(t, registry).sum("rowlock_lock_handover_duration_seconds", named, "main"); n != 0 {
				t.Errorf("%g hand-overs, want none", n)
			}
		})
	}
}

// A classifier is an application's code, and runs where a panic would end the process.
func TestABadClassifierHarmsNothing(t *testing.T) {
	const keys = 2_000
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			locks, registry := page(t, func(key string) string {
				if key == "bad" {
					panic("classifier")
				}
				return key
			})
			useOnce(t, locks, "bad")
			for i := range keys {
				useOnce(t, locks, fmt.Sprint(i))
			}
			l, err := locks.Lock(t.Context(), "bad", rowlock.MaxHold(100*time.Millisecond))
			must(t, err)
			<-l.Context().Done()
			must(t, locks.Close())
			got := scraped(t, registry)["rowlock_lock_wait_duration_seconds"].GetMetric()
			if len(got) < 100 || len(got) > 102 { // with none and _other
				t.Errorf("%d series of %d classes, want about a hundred", len(got), keys)
			}
			waits := uint64(0)
			for _, m := range got {
				waits += m.GetHistogram().GetSampleCount()
			}
			if waits != keys+2 {
				t.Errorf("%d waits, want all %d", waits, keys+2)
			}
		})
	}
}

func TestAnExemplarThatPanicsHarmsNothing(t *testing.T) {
	c, err := promrowlock.New(promrowlock.Config{
		Exemplar: func(context.Context) prometheus.Labels { panic("exemplar") },
	})
	must(t, err)
	useOnce(t, client(t, c.Hooks()), "k")
}

func TestAKeyOfAnyBytesLeavesThePageReadable(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			locks, registry := page(t, func(key string) string { return key })
			for _, key := range hostile {
				useOnce(t, locks, key)
			}
			got := scraped(t, registry)
			for _, key := range hostile {
				class := strings.ToValidUTF8(key, "�")
				class = class[:min(len(class), 128)]
				if n := got.sum("rowlock_lock_wait_duration_seconds", "rowlock_key_class", class); n != 1 {
					t.Errorf("%q: %g waits of class %q, want 1", key, n, class)
				}
			}
		})
	}
}

// Scrapes, hooks of many goroutines, and Close at the same time: -race finds what they share.
func TestAClientIsClosedWhileItIsUsedAndScraped(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			locks, registry := page(t, func(key string) string { return key })
			var all sync.WaitGroup
			begun := make(chan struct{}, 100)
			for i := range 8 {
				all.Go(func() {
					for n := 0; ; n++ {
						err := locks.Do(context.Background(), fmt.Sprint((i+n)%5),
							func(context.Context, *rowlock.Lock) error { return nil })
						if err != nil {
							return
						}
						if n == 5 {
							begun <- struct{}{}
						}
					}
				})
			}
			for range 8 {
				<-begun
			}
			scraped(t, registry)
			all.Go(func() { _ = locks.Close() })
			for range 3 {
				scraped(t, registry)
			}
			all.Wait()
			got := scraped(t, registry)
			began := got.sum("rowlock_lock_acquired_total", named, "main")
			ended := got.sum("rowlock_lock_released_total", named, "main")
			held := got.sum("rowlock_lock_held", named, "main")
			if began != ended || held != 0 || began < 40 {
				t.Errorf("%g locks began, %g ended and %g are held after Close", began, ended, held)
			}
			for _, of := range []string{"wait", "hold"} {
				if n := got.sum("rowlock_lock_"+of+"_duration_seconds", named, "main"); n != began {
					t.Errorf("%g times of %s, want %g", n, of, began)
				}
			}
		})
	}
}

func TestTwoClientsShareARegistryByTheirNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	for i, name := range []string{"a", "b"} {
		c, err := promrowlock.New(promrowlock.Config{Name: name})
		must(t, err)
		locks := client(t, c.Hooks())
		must(t, c.Observe(locks))
		must(t, registry.Register(c))
		for range i + 1 {
			useOnce(t, locks, "k")
		}
		if err := registry.Register(c); err == nil {
			t.Error("a collector was registered twice")
		}
	}
	for _, name := range []string{"a", ""} {
		c, err := promrowlock.New(promrowlock.Config{Name: name})
		must(t, err)
		if err := registry.Register(c); err == nil {
			t.Errorf("a registry has taken another collector named %q", name)
		}
	}
	got := scraped(t, registry)
	for name, want := range map[string]float64{"a": 1, "b": 2} {
		for _, metric := range []string{"rowlock_lock_acquired_total", "rowlock_lock_hold_duration_seconds"} {
			if n := got.sum(metric, named, name); n != want {
				t.Errorf("%s of %s is %g, want %g", metric, name, n, want)
			}
		}
	}
}

func TestTwoClientsShareAMeterByTheirNames(t *testing.T) {
	exporter, registry := exported(t)
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))
	for i, name := range []string{"a", "b"} {
		telemetry, err := otelrowlock.New(otelrowlock.Config{Name: name, MeterProvider: meters})
		must(t, err)
		locks := client(t, telemetry.Hooks())
		must(t, telemetry.Observe(locks))
		for range i + 1 {
			useOnce(t, locks, "k")
		}
	}
	got := scraped(t, registry)
	for name, want := range map[string]float64{"a": 1, "b": 2} {
		for _, metric := range []string{"rowlock_lock_acquired_total", "rowlock_lock_hold_duration_seconds"} {
			if n := got.sum(metric, named, name); n != want {
				t.Errorf("%s of %s is %g, want %g", metric, name, n, want)
			}
		}
	}
}

// promtool knows conventions: units, suffixes and help texts.
func TestPromtoolFindsNothingToSayOfThePages(t *testing.T) {
	tool := program(t, "promtool")
	for name, page := range pages {
		locks, registry := page(t, nil)
		useOnce(t, locks, "k")
		cmd := exec.Command(tool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text(t, registry))
		if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
			t.Errorf("%s: promtool check metrics: %v\n%s", name, err, said)
		}
	}
}
