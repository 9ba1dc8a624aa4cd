package watchdog_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

func TestRenewedLeaseLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: extend}
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		w := keep(t, dog, "k")
		time.Sleep(100 * ttl)
		w.alive(t)
		want := lease.RenewRequest{Lease: w.Lease, TTL: ttl}
		last := w.sent
		for _, s := range store.all() {
			if len(s.reqs) != 1 || s.reqs[0] != want {
				t.Fatalf("sent %+v, want %+v", s.reqs, want)
			}
			if gap := s.at.Sub(last); gap < every*9/10 || gap > every {
				t.Errorf("renewed %v after the last, want %v less at most a tenth", gap, every)
			}
			last = s.at
		}
	})
}

// Leases that were all granted at one moment, as after a restart, must not ask for their renewal at
// one moment for ever.
func TestRenewalsAreJittered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(map[time.Duration]bool)
		for range 20 {
			store := &recorder{store: extend}
			dog := watchdog.New(store, watchdog.Config{})
			w := keep(t, dog, "k")
			time.Sleep(every)
			dog.Stop()
			seen[store.all()[0].at.Sub(w.sent)] = true
		}
		if len(seen) < 15 {
			t.Errorf("20 dogs renewed after %d different times", len(seen))
		}
	})
}

func TestLeaseThatIsNotToBeRenewedIsOnlyWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: extend}
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		keep(t, dog, "k", noRenew).endAt(t, trust, lease.ErrLost)
		if sends := store.all(); len(sends) != 0 {
			t.Errorf("renewed: %+v", sends)
		}
	})
}

func TestDroppedLeaseIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: extend}
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		w, other := keep(t, dog, "k"), keep(t, dog, "other")
		time.Sleep(5 * ttl)
		if !dog.Drop(&w.Held) {
			t.Error("Drop of a watched lease says it was none")
		}
		if dog.Drop(&w.Held) {
			t.Error("the second Drop says the lease was watched")
		}
		dropped := time.Now()
		time.Sleep(5 * ttl)
		w.alive(t) // End is not called: the caller of Drop knows
		other.alive(t)
		for _, s := range store.since(dropped.Add(1)) {
			for _, r := range s.reqs {
				if r.Key == "k" {
					t.Errorf("renewed %v after Drop", s.at.Sub(dropped))
				}
			}
		}
	})
}

// The answer of a renewal that was under way comes after the lease was given back, and truly says
// that it is gone.
func TestAnswerAfterDropIsIgnored(t *testing.T) {
	for _, outcome := range []lease.RenewOutcome{lease.Lost, lease.Extended, lease.Busy} {
		t.Run(outcome.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &recorder{store: renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
					time.Sleep(time.Second)
					return all(reqs, outcome)
				})}
				dog := watchdog.New(store, watchdog.Config{})
				defer dog.Stop()
				w := keep(t, dog, "k")
				time.Sleep(every)
				if len(store.all()) != 1 || !dog.Drop(&w.Held) {
					t.Fatalf("no renewal is under way: %+v", store.all())
				}
				time.Sleep(10 * ttl)
				w.alive(t)
				if n := len(store.all()); n != 1 {
					t.Errorf("%d renewals", n)
				}
			})
		})
	}
}

// What waits for a place among the renewals under way has not been sent yet.
func TestLeaseDroppedWhileItWaitsIsNotRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: renewer(func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			time.Sleep(5 * time.Second)
			return all(reqs, lease.Extended)
		})}
		dog := watchdog.New(store, watchdog.Config{Batch: 1, Parallel: 1})
		defer dog.Stop()
		keep(t, dog, "first", renewEvery(5*time.Second))
		time.Sleep(time.Second)
		waits := keep(t, dog, "waits", renewEvery(5*time.Second))
		time.Sleep(6 * time.Second) // first is under way since 5 s, waits due since 6 s
		dog.Drop(&waits.Held)
		time.Sleep(ttl)
		for _, s := range store.all() {
			if s.reqs[0].Key == "waits" {
				t.Errorf("renewed after %v", s.at.Sub(waits.sent))
			}
		}
	})
}

func TestFailedRenewalIsToldAndTriedAgain(t *testing.T) {
	failed := errors.New("connection reset")
	for name, fail := range map[string]renewer{
		"the call": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) { return nil, failed },
		"two of three leases": func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			answers, _ := all(reqs, lease.Extended)
			answers[0].Err, answers[2].Err = failed, errors.New("another")
			return answers, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				store := &recorder{}
				store.store = renewer(func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
					if time.Since(began) < ttl/2 && len(reqs) == 3 {
						return fail(ctx, reqs)
					}
					return all(reqs, lease.Extended)
				})
				told := 0
				dog := watchdog.New(store, watchdog.Config{Failed: func(_ context.Context, err error, leases int) {
					told++
					if want := map[string]int{"the call": 3, "two of three leases": 2}[name]; !errors.Is(err, failed) || leases != want {
						t.Errorf("told of %d leases, %v; want %d, %v", leases, err, want, failed)
					}
				}})
				defer dog.Stop()
				a, b, c := keep(t, dog, "a"), keep(t, dog, "b"), keep(t, dog, "c")
				time.Sleep(10 * ttl)
				a.alive(t)
				b.alive(t)
				c.alive(t)
				if told == 0 {
					t.Error("not told")
				}
				sends := store.all()
				if wait := sends[1].at.Sub(sends[0].at); wait < ttl/20 || wait > ttl/10 {
					t.Errorf("tried again after %v, want somewhat less than %v", wait, ttl/10)
				}
			})
		})
	}
}

// A store that is back shortly before the deadline must be asked once more in time.
func TestLastTryComesShortlyBeforeTheDeadline(t *testing.T) {
	for range 20 { // of different jitter
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			dog := watchdog.New(renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
				if time.Since(began) < trust-ttl/40 {
					return nil, errors.New("down")
				}
				return all(reqs, lease.Extended)
			}), watchdog.Config{})
			defer dog.Stop()
			w := keep(t, dog, "k")
			time.Sleep(3 * ttl)
			w.alive(t)
		})
	}
}

// The cost of ten thousand leases, which were granted all over a period, is that of a few
// statements.
func TestManyLeasesRenewTogether(t *testing.T) {
	const leases, batch = 10_000, 500
	synctest.Test(t, func(t *testing.T) {
		before := inBubble()
		store := &recorder{store: extend}
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		keepMany(t, dog, leases, every/leases)
		synctest.Wait() // for a renewal under way
		if n := inBubble() - before; n != 1 {
			t.Errorf("%d more goroutines for %d leases, want one", n, leases)
		}
		for period := range 10 {
			from := time.Now()
			time.Sleep(every)
			renewed, sends := 0, store.since(from)
			for _, s := range sends {
				renewed += len(s.reqs)
				checkBatch(t, s.reqs, batch)
			}
			t.Logf("period %d: %d statements for %d renewals", period, len(sends), renewed)
			if few := renewed/batch + 15; len(sends) > few {
				t.Errorf("period %d: %d statements for %d renewals, want at most %d", period, len(sends), renewed, few)
			}
			if renewed < leases {
				t.Errorf("period %d: %d of %d leases renewed", period, renewed, leases)
			}
		}
	})
}

// inBubble counts the goroutines of the test's bubble. runtime.NumGoroutine counts one of the
// process's own as well, such as the one that runs finalizers, which may begin at any time.
func inBubble() int {
	stacks := make([]byte, 1<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ", synctest bubble ")
}

// keepMany keeps leases with keys in random order, one a pause.
func keepMany(t *testing.T, dog *watchdog.Watchdog, n int, pause time.Duration) []*watch {
	t.Helper()
	watches := make([]*watch, n)
	for i, key := range rand.Perm(n) {
		watches[i] = keep(t, dog, fmt.Sprintf("key/%06d", key))
		time.Sleep(pause)
	}
	return watches
}

func checkBatch(t *testing.T, reqs []lease.RenewRequest, most int) {
	t.Helper()
	if len(reqs) > most {
		t.Errorf("%d leases in one statement", len(reqs))
	}
	if !slices.IsSortedFunc(reqs, func(a, b lease.RenewRequest) int {
		if a.Key <= b.Key {
			return -1
		}
		return 1
	}) {
		t.Error("a batch is not in key order")
	}
}

func TestBatchAndParallelAreLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, most := make(chan struct{}, 100), 0
		store := &recorder{store: renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			under <- struct{}{}
			most = max(most, len(under))
			time.Sleep(time.Second)
			<-under
			return all(reqs, lease.Extended)
		})}
		dog := watchdog.New(store, watchdog.Config{Batch: 3, Parallel: 1})
		defer dog.Stop()
		watches := keepMany(t, dog, 10, 0)
		time.Sleep(10 * ttl)
		synctest.Wait()
		for _, w := range watches {
			w.alive(t)
		}
		for _, s := range store.all() {
			checkBatch(t, s.reqs, 3)
		}
		if most != 1 {
			t.Errorf("%d renewals under way at once", most)
		}
	})
}
