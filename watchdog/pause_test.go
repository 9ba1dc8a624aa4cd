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

// A holder that releases the lease as what it was would leave the member behind.
func TestALeaseThatEndsWhilePausedIsSharedIfTheStoreSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog := watchdog.New(extend, watchdog.Config{})
		defer dog.Stop()
		h := &watchdog.Held{
			Lease: lease.Lease{Key: "k", Owner: lease.NewOwner(), Token: 1},
			TTL:   ttl, Margin: margin, Every: every, Holder: holder{end: func(error) {}},
		}
		if err := dog.Keep(h, time.Now()); err != nil {
			t.Fatal(err)
		}
		if !dog.Pause(h) {
			t.Fatal("not paused")
		}
		sent := time.Now()
		time.Sleep(trust)
		synctest.Wait() // it has ended
		if err := dog.Resume(h, true, sent); !errors.Is(err, lease.ErrLost) {
			t.Errorf("Resume: %v", err)
		}
		if !h.Shared {
			t.Error("the lease is not shared")
		}
	})
}

// It is due, and waits for another renewal to end, when it is paused.
func TestALeaseThatWasPausedIsInNoRenewalTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most, calls := 0, 0
		store := renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			most = max(most, len(reqs))
			if calls++; calls == 1 {
				time.Sleep(5 * time.Second)
			}
			return all(reqs, lease.Extended)
		})
		dog := watchdog.New(store, watchdog.Config{Parallel: 1})
		defer dog.Stop()
		due := func(key string) *watchdog.Held {
			h := &watchdog.Held{
				Lease: lease.Lease{Key: key, Owner: lease.NewOwner(), Token: 1},
				TTL:   ttl, Margin: margin, Every: every, Holder: holder{end: func(error) {}},
			}
			if err := dog.Keep(h, time.Now()); err != nil {
				t.Fatal(err)
			}
			dog.Leaving(h)
			time.Sleep(time.Second)
			return h
		}
		due("under way")
		h := due("ready")
		if !dog.Pause(h) {
			t.Fatal("not paused")
		}
		if err := dog.Resume(h, false, time.Now()); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if most != 1 || calls != 2 {
			t.Errorf("%d requests in one of %d renewals", most, calls)
		}
	})
}
