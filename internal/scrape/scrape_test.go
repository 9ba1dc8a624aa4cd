package scrape

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/measure"
)

const named = "rowlock_client_name"

// One set of alerts serves both.
func TestBothPagesHaveTheSameMetrics(t *testing.T) {
	_, a := byCollector(t, nil)
	locks, b := byOTel(t, nil)
	useOnce(t, locks, "k")
	l, err := locks.Lock(t.Context(), "k", rowlock.TTL(time.Minute))
	must(t, err)
	must(t, l.Unlock(t.Context()))
	collector, otel := scraped(t, a).ours(), scraped(t, b).ours()
	for _, late := range []measure.Metric{measure.HandOver, measure.Renewal} { // without any yet
		delete(collector, late.Prometheus(false))
		delete(otel, late.Prometheus(false))
	}
	if !maps.Equal(collector, otel) {
		t.Errorf("the pages differ:\n%v\n%v", collector, otel)
	}
	if len(collector) < len(measure.Numbers)+10 {
		t.Errorf("only %d metrics: %v", len(collector), collector)
	}
}

func TestAScrapeShowsWhatHappened(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			locks, registry := page(t, nil)
			useOnce(t, locks, "gone")
			held, err := locks.Lock(t.Context(), "held")
			must(t, err)
			for range 3 {
				if l, _ := locks.TryLock(t.Context(), "held"); l != nil {
					t.Fatal("a held key was granted")
				}
			}
			got := scraped(t, registry)
			for metric, want := range map[string]float64{
				"rowlock_lock_held": 1, "rowlock_lock_acquired_total": 2,
				"rowlock_lock_released_total": 1, "rowlock_lock_contended_total": 3,
				"rowlock_lock_wait_duration_seconds": 2, "rowlock_lock_hold_duration_seconds": 1,
				"rowlock_lock_lost_total": 0, "rowlock_call_waiting": 0,
			} {
				if n := got.sum(metric, named, "main"); n != want || got[metric] == nil {
					t.Errorf("%s is %g, want %g", metric, n, want)
				}
			}
			must(t, held.Unlock(t.Context()))
			if n := scraped(t, registry).sum("rowlock_lock_held", named, "main"); n != 0 {
				t.Errorf("%g locks are held after Unlock", n)
			}
		})
	}
}

func TestACauseOfLossIsALabel(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			locks, registry := page(t, nil)
			l, err := locks.Lock(t.Context(), "k", rowlock.MaxHold(100*time.Millisecond))
			must(t, err)
			<-l.Context().Done()
			must(t, locks.Close()) // the hooks are over
			got := scraped(t, registry)
			if n := got.sum("rowlock_lock_lost_total", "error_type", "max_hold"); n != 1 {
				t.Errorf("%g locks were lost by MaxHold, want 1", n)
			}
			for _, m := range got["rowlock_lock_lost_total"].GetMetric() {
				if len(m.Label) == 0 {
					t.Error("a loss has no cause")
				}
			}
			if n := len(got["rowlock_lock_lost_total"].GetMetric()); n != len(measure.Causes) {
				t.Errorf("%d causes, want all %d from the start", n, len(measure.Causes))
			}
		})
	}
}

// Keys may be secret, and are many.
func TestAKeyIsNoLabelUnlessTheClassifierSaysSo(t *testing.T) {
	for name, page := range pages {
		t.Run(name, func(t *testing.T) {
			locks, registry := page(t, nil)
			useOnce(t, locks, "patient-4711")
			got := scraped(t, registry)
			for _, family := range got {
				if strings.Contains(family.String(), "4711") {
					t.Errorf("the page has the key: %s", family)
				}
			}
			locks, registry = page(t, func(key string) string {
				class, _, _ := strings.Cut(key, "-")
				return class
			})
			useOnce(t, locks, "patient-4711")
			got = scraped(t, registry)
			if n := got.sum("rowlock_lock_wait_duration_seconds", "rowlock_key_class", "patient"); n != 1 {
				t.Errorf("%g waits of the class, want 1", n)
			}
			if strings.Contains(got["rowlock_lock_wait_duration_seconds"].String(), "4711") {
				t.Error("the page has the key although its class is another")
			}
		})
	}
}
