package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// A bubble fails if a goroutine is left in it.
func TestStopLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: renewer(swallow)}
		dog := watchdog.New(store, watchdog.Config{Batch: 1, Failed: func(_ context.Context, err error, leases int) {
			t.Errorf("told of %d leases, %v: being stopped is no failure", leases, err)
		}})
		watches := keepMany(t, dog, 10, 0)
		time.Sleep(every)
		if n := len(store.all()); n != 2 {
			t.Fatalf("%d renewals are under way", n)
		}
		dog.Stop()
		dog.Stop() // twice is harmless
		late := newWatch(t, "late")
		if err := dog.Keep(&late.Held, late.sent); !errors.Is(err, lease.ErrClosed) {
			t.Errorf("kept after Stop: %v", err)
		}
		time.Sleep(10 * ttl)
		for _, w := range watches {
			w.alive(t)
			if !dog.Drop(&w.Held) {
				t.Error("Stop has forgotten a lease that its holder did not drop")
			}
		}
	})
}

func TestStopOfAnIdleDog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(extend, watchdog.Config{})
		w := keep(t, dog, "k")
		dog.Drop(&w.Held)
		time.Sleep(365 * 24 * time.Hour)
		dog.Stop()
	})
}

// A function that a Watchdog calls may call the Watchdog, so the mutex must be free meanwhile.
func TestCallbacksMayCallTheDog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dog *watchdog.Watchdog
		calls := make(chan string, 1000)
		call := func(name string) {
			calls <- name
			w := keep(t, dog, name)
			dog.Fenced(&w.Held, time.Now())
			dog.Leaving(&w.Held)
			dog.Deadline(&w.Held)
			dog.Drop(&w.Held)
		}
		store := newStepper()
		dog = watchdog.New(phases(
			phase{3 * time.Second, store.Renew},
			phase{6 * time.Second, refuse},
			phase{9 * time.Second, func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
				answers, err := store.Renew(ctx, reqs)
				answers[0].Clock += time.Hour
				return answers, err
			}},
			phase{forever, answers(lease.Lost)},
		), watchdog.Config{
			Batch:  1,
			Failed: func(context.Context, error, int) { call("failed") },
			Skewed: func(time.Duration) { call("skewed") },
		})
		defer dog.Stop()
		told := func(by string) func(*watchdog.Held) {
			return func(h *watchdog.Held) { h.Holder = holder{end: func(error) { call("told by " + by) }} }
		}
		keep(t, dog, "renewed", renewEvery(time.Second), told("the store"))
		keep(t, dog, "watched", noRenew, told("the clock"))
		time.Sleep(10 * ttl)
		synctest.Wait()
		called := make(map[string]bool)
		for len(calls) > 0 {
			called[<-calls] = true
		}
		for _, name := range []string{"failed", "skewed", "told by the store", "told by the clock"} {
			if !called[name] {
				t.Errorf("not called: %s", name)
			}
		}
	})
}

// For the race detector: everything at once, on a store that does a bit of everything.
func TestKeepDropStopAtOnce(t *testing.T) {
	store := renewer(func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		switch rand.N(5) {
		case 0:
			return nil, errDown
		case 1:
			<-time.After(rand.N(2 * time.Millisecond))
		}
		answers, _ := all(reqs, lease.Extended)
		for i := range answers {
			answers[i].Clock = rand.N(time.Hour)
			answers[i].Outcome = []lease.RenewOutcome{lease.Extended, lease.Extended, lease.Extended, lease.Busy, lease.Lost}[rand.N(5)]
		}
		return answers, nil
	})
	for range 5 {
		dog := watchdog.New(store, watchdog.Config{Batch: 8, Failed: func(context.Context, error, int) {}, Skewed: func(time.Duration) {}})
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 200 {
					w := newWatch(t, fmt.Sprintf("%d/%d", g, i))
					w.TTL, w.Margin, w.Every = 20*time.Millisecond, 2*time.Millisecond, 2*time.Millisecond
					if i%7 == 0 {
						w.Until = w.sent.Add(rand.N(10 * time.Millisecond))
					}
					_ = dog.Keep(&w.Held, w.sent)
					dog.Deadline(&w.Held)
					switch rand.N(4) {
					case 0:
						dog.Fenced(&w.Held, time.Now())
					case 1:
						<-time.After(rand.N(time.Millisecond))
						dog.Leaving(&w.Held)
					case 2:
						continue // left to the dog
					}
					<-time.After(rand.N(time.Millisecond))
					if dog.Drop(&w.Held) && len(w.ended) > 0 {
						t.Error("dropped what had ended")
					}
				}
			})
		}
		wg.Wait()
		dog.Stop()
	}
}
