package watchdog_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

func TestDeadlineCountsFromBeforeTheSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			time.Sleep(10 * time.Second)
			return all(reqs, lease.Extended)
		})}
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		w := keep(t, dog, "k")
		if got := dog.Deadline(&w.Held); !got.Equal(w.sent.Add(trust)) {
			t.Errorf("granted: deadline %v after the request was sent, want %v", got.Sub(w.sent), trust)
		}
		time.Sleep(every + 10*time.Second)
		w.alive(t)
		sent := store.all()[0].at
		if got := dog.Deadline(&w.Held); !got.Equal(sent.Add(trust)) {
			t.Errorf("extended: deadline %v after the renewal was sent, want %v", got.Sub(sent), trust)
		}
	})
}

func TestGrantThatTookTooLongIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(extend, watchdog.Config{})
		defer dog.Stop()
		other := keep(t, dog, "other")
		late, last := newWatch(t, "late"), newWatch(t, "last")
		last.Every = 0
		time.Sleep(trust - 1)
		if err := dog.Keep(&last.Held, last.sent); err != nil {
			t.Errorf("refused a nanosecond before the deadline: %v", err)
		}
		last.endAt(t, trust, lease.ErrLost)
		if err := dog.Keep(&late.Held, late.sent); !errors.Is(err, lease.ErrLost) {
			t.Errorf("kept at the deadline: %v", err)
		}
		if dog.Drop(&late.Held) {
			t.Error("dropped what was never kept")
		}
		time.Sleep(10 * ttl)
		late.alive(t) // it was never begun
		other.alive(t)
	})
}

// Whatever the store does, the holder knows by its own clock when to stop.
func TestLossIsToldByTheDeadline(t *testing.T) {
	for name, store := range map[string]renewer{
		"it swallows requests":   swallow,
		"it refuses connections": refuse,
		"it times out after a while": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			time.Sleep(4 * time.Second)
			return nil, errDown
		},
		"it fails on each lease": func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			return []lease.Renewed{{Err: errDown, Outcome: lease.Extended}}, nil
		},
		"it answers too little": func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return nil, nil
		},
		"it answers too much": func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			return all(append(reqs, reqs...), lease.Extended)
		},
		"it is always busy": func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			return all(reqs, lease.Busy)
		},
		"it extends too late": func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			time.Sleep(ttl)
			return all(reqs, lease.Extended)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dog := watchdog.New(store, watchdog.Config{})
				defer dog.Stop()
				keep(t, dog, "k").endAt(t, trust, lease.ErrLost)
			})
		})
	}
}

func TestLossIsToldWhileRenewNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		dog := watchdog.New(renewer(func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			<-stuck // and never mind ctx
			return nil, errors.New("at last")
		}), watchdog.Config{Batch: 1})
		defer dog.Stop()
		defer close(stuck)
		a, b, c := keep(t, dog, "a"), keep(t, dog, "b"), keep(t, dog, "c")
		a.endAt(t, trust, lease.ErrLost)
		b.endAt(t, trust, lease.ErrLost)
		c.endAt(t, trust, lease.ErrLost) // its renewal had no place among the two under way
		keep(t, dog, "d").endAt(t, trust, lease.ErrLost)
	})
}

func TestLossSeenByTheStoreIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			return all(reqs, lease.Lost)
		})}
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		w := keep(t, dog, "k")
		if e := w.end(t, lease.ErrLost); e.after > every {
			t.Errorf("told after %v, not with the first renewal", e.after)
		}
		time.Sleep(10 * ttl)
		w.alive(t) // ended once
		if n := len(store.all()); n != 1 {
			t.Errorf("%d renewals of a lost lease", n)
		}
	})
}

// One renewal hangs; the others' go past it, and so do all deadlines.
func TestHangingRenewalDelaysNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(renewer(func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if reqs[0].Key == "hangs" {
				return swallow(ctx, reqs)
			}
			return all(reqs, lease.Extended)
		}), watchdog.Config{Batch: 1})
		defer dog.Stop()
		hangs := keep(t, dog, "hangs", renewEvery(time.Second))
		watched, renewed := keep(t, dog, "watched", noRenew), keep(t, dog, "renewed")
		hangs.endAt(t, trust, lease.ErrLost)
		watched.endAt(t, trust, lease.ErrLost)
		time.Sleep(10 * ttl)
		renewed.alive(t)
	})
}

// A black hole takes both places for renewals. When all leases in it are over the places are given
// to others.
func TestRenewalsGoOnAfterABlackHole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		dog := watchdog.New(renewer(func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			if time.Since(began) < 25*time.Second {
				return swallow(ctx, reqs)
			}
			return all(reqs, lease.Extended)
		}), watchdog.Config{Batch: 1})
		defer dog.Stop()
		a, b := keep(t, dog, "a"), keep(t, dog, "b")
		a.endAt(t, trust, lease.ErrLost)
		b.endAt(t, trust, lease.ErrLost)
		c := keep(t, dog, "c")
		time.Sleep(10 * ttl)
		c.alive(t)
	})
}

// A lease that is nearly over goes along in the same renewal; the others' answers are waited for
// past its deadline.
func TestRenewalIsWaitedForAsLongAsItMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(renewer(func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(5 * time.Second):
				return all(reqs, lease.Extended)
			}
		}), watchdog.Config{Failed: func(_ context.Context, err error, leases int) { t.Errorf("gave up: %v", err) }})
		defer dog.Stop()
		short := keep(t, dog, "short", func(h *watchdog.Held) { h.TTL = 15 * time.Second })
		long := keep(t, dog, "long")
		short.endAt(t, 12*time.Second, lease.ErrLost)
		time.Sleep(10 * ttl)
		long.alive(t)
	})
}

func TestMaxHoldEndsOnTimeThoughRenewalsSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &recorder{store: extend}
		dog := watchdog.New(store, watchdog.Config{})
		defer dog.Stop()
		w := newWatch(t, "k")
		w.Until = w.sent.Add(5*ttl + 1)
		if err := dog.Keep(&w.Held, w.sent); err != nil {
			t.Fatal(err)
		}
		w.endAt(t, 5*ttl+1, lease.ErrMaxHold)
		renewals := len(store.all())
		if renewals < 15 {
			t.Errorf("%d renewals in 5 TTL", renewals)
		}
		time.Sleep(10 * ttl)
		if n := len(store.all()) - renewals; n != 0 {
			t.Errorf("%d renewals after the end", n)
		}
	})
}

func TestMaxHoldDoesNotHideLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(renewer(swallow), watchdog.Config{})
		defer dog.Stop()
		w := newWatch(t, "k")
		w.Until = w.sent.Add(ttl)
		if err := dog.Keep(&w.Held, w.sent); err != nil {
			t.Fatal(err)
		}
		w.endAt(t, trust, lease.ErrLost)
	})
}
