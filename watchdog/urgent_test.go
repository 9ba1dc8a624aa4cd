package watchdog_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// Renewals of all leases take two fifths of the time that the long ones have between two, and more
// than a short one lives.
func TestAShortLeaseIsRenewedBeforeLongOnesThatHaveTime(t *testing.T) {
	race.Skip(t)
	synctest.Test(t, func(t *testing.T) {
		slow := renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			time.Sleep(100 * time.Millisecond)
			return all(reqs, lease.Extended)
		})
		dog := watchdog.New(slow, watchdog.Config{})
		defer dog.Stop()
		var lost atomic.Int64
		keep := func(n int, ttl time.Duration) {
			for i := range n {
				h := &watchdog.Held{
					Lease: lease.Lease{Key: fmt.Sprint(ttl, i), Owner: lease.NewOwner(), Token: 1},
					TTL:   ttl, Margin: ttl / 10, Every: ttl / 3,
					Holder: holder{end: func(error) { lost.Add(1) }},
				}
				if err := dog.Keep(h, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
		}
		keep(40_000, 30*time.Second)
		keep(20, 3*time.Second)
		time.Sleep(2 * time.Minute)
		if n := lost.Load(); n > 0 {
			t.Errorf("%d leases were lost of a store that answers", n)
		}
	})
}

// A clock that ran ahead brings some deadlines forward: leases that were put in order before are
// put in order again.
func TestALeaseThatAJumpOfTheClockMakesUrgentIsRenewedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		began, jump := time.Now(), time.Duration(0)
		store := renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			order = append(order, reqs[0].Key)
			if len(order) == 2 { // the others come due meanwhile
				time.Sleep(time.Minute)
				jump = 1500 * time.Millisecond
			}
			answers, err := all(reqs, lease.Extended)
			answers[0].Clock = time.Hour + time.Since(began) + jump
			return answers, err
		})
		dog := watchdog.New(store, watchdog.Config{Batch: 1, Parallel: 1})
		defer dog.Stop()
		keep := func(key string, ttl, margin, every time.Duration) {
			h := &watchdog.Held{
				Lease: lease.Lease{Key: key, Owner: lease.NewOwner(), Token: 1},
				TTL:   ttl, Margin: margin, Every: every, Holder: holder{end: func(error) {}},
			}
			if err := dog.Keep(h, began); err != nil {
				t.Fatal(err)
			}
		}
		keep("clock", 1000*time.Second, 100*time.Second, time.Second)
		keep("wide", 110*time.Second, 10*time.Second, 20*time.Second)          // ends after 100 s
		keep("narrow", 102500*time.Millisecond, 2*time.Second, 20*time.Second) // 100.5 s, and 99 s
		time.Sleep(90 * time.Second)
		synctest.Wait()
		dog.Stop() // no renewal writes to order any more
		if fmt.Sprint(order[:4]) != "[clock clock narrow wide]" {
			t.Errorf("renewed %v", order)
		}
	})
}
