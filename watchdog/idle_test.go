package watchdog_test

import (
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// idling returns a lease that must show progress every most.
func idling(t *testing.T, dog *watchdog.Watchdog, key string, most time.Duration) *watch {
	t.Helper()
	w := keep(t, dog, key)
	dog.MaxIdle(&w.Held, most)
	return w
}

func TestALeaseWithoutProgressEndsAtThatMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: extend}
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		busy, still := idling(t, dog, "busy", time.Second), idling(t, dog, "still", time.Second)
		other := keep(t, dog, "other")
		for range 100 {
			time.Sleep(time.Second - 1)
			if !busy.Progress() {
				t.Fatal("progress in time is too late")
			}
		}
		still.endAt(t, time.Second, lease.ErrIdle)
		busy.alive(t)
		other.alive(t)
		busy.endAt(t, 101*time.Second-100, lease.ErrIdle)
		renewals := len(store.all())
		time.Sleep(10 * ttl)
		for _, s := range store.all()[renewals:] {
			for _, r := range s.reqs {
				if r.Key != "other" {
					t.Errorf("%q was renewed after its end", r.Key)
				}
			}
		}
		other.alive(t)
	})
}

// The idle time of a lock that is renewed for long, or never, and one without a sensible end.
func TestIdleTimesLongerThanTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(extend, watchdog.Config{})
		defer dog.Stop()
		long, ever := idling(t, dog, "long", 5*ttl+1), idling(t, dog, "ever", math.MaxInt64)
		lost := keep(t, dog, "not renewed", noRenew)
		dog.MaxIdle(&lost.Held, ttl)
		lost.endAt(t, trust, lease.ErrLost)
		long.endAt(t, 5*ttl+1, lease.ErrIdle)
		ever.Progress()
		time.Sleep(100 * ttl)
		ever.alive(t)
	})
}

// A process that was stopped goes on with a call of Progress, before its watchdog runs.
func TestLateProgressIsNoProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(extend, watchdog.Config{})
		defer dog.Stop()
		keep(t, dog, "stops the watchdog", func(h *watchdog.Held) {
			h.Until = time.Now().Add(500 * time.Millisecond)
			h.Holder = holder{end: func(error) { time.Sleep(2 * time.Second) }}
		})
		w := idling(t, dog, "k", time.Second)
		time.Sleep(time.Second)
		for range 2 {
			if w.Progress() {
				t.Error("progress after the idle time counts")
			}
		}
		w.end(t, lease.ErrIdle)
	})
}

func TestProgressWithoutALimitIsHarmless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(extend, watchdog.Config{})
		defer dog.Stop()
		w, over := keep(t, dog, "k"), keep(t, dog, "over")
		dog.Drop(&over.Held)
		dog.MaxIdle(&over.Held, time.Second)
		if !w.Progress() || !over.Progress() {
			t.Error("refused")
		}
		time.Sleep(5 * ttl)
		w.alive(t)
		over.alive(t)
	})
}

// Many goroutines show progress of one lease; none takes back what another has shown.
func TestProgressFromManyGoroutines(t *testing.T) {
	dog := watchdog.New(extend, watchdog.Config{})
	defer dog.Stop()
	w := idling(t, dog, "k", time.Minute)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10_000 {
				if !w.Progress() {
					t.Error("refused")
				}
			}
		})
	}
	all.Wait()
}

func BenchmarkProgress(b *testing.B) {
	dog := watchdog.New(extend, watchdog.Config{})
	defer dog.Stop()
	w := &watchdog.Held{
		Lease: lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: 1},
		TTL:   ttl, Margin: margin, Holder: holder{end: func(error) {}},
	}
	if err := dog.Keep(w, time.Now()); err != nil {
		b.Fatal(err)
	}
	dog.MaxIdle(w, time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		w.Progress()
	}
}
