package watchdog_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// outage is a store that is down between two moments after the leases were granted: it refuses, or
// lets callers hang until it is back.
type outage struct {
	began    time.Time
	from, to time.Duration
	hangs    bool
}

func (o *outage) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	now := time.Since(o.began)
	switch down := now >= o.from && now < o.to; {
	case down && o.hangs:
		select {
		case <-time.After(o.to - now):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case down:
		return nil, errDown
	}
	return all(reqs, lease.Extended)
}

// The database is away for 0.8 TTL and back before the deadlines. Nothing may be lost, and what was
// missed must not come back as a storm.
func TestOutageOfMostOfATTLLosesNothing(t *testing.T) {
	leases := race.Few(2_000, 10_000)
	for _, hangs := range []bool{false, true} {
		for _, from := range []time.Duration{0, 1, ttl / 100, ttl / 20} {
			name := fmt.Sprintf("down from %v", from)
			if hangs {
				name = fmt.Sprintf("hanging from %v", from)
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := &recorder{store: &outage{time.Now(), from, from + ttl*8/10, hangs}}
					dog := watchdog.New(store, watchdog.Config{})
					defer dog.Stop()
					watches := keepMany(t, dog, leases, 0)
					began := time.Now()
					time.Sleep(2 * ttl)
					steady := began.Add(2 * ttl)
					time.Sleep(2 * ttl)
					for _, w := range watches {
						w.alive(t)
					}
					peak, usual := busiest(store.all(), every), busiest(store.since(steady), every)
					t.Logf("%d statements in the busiest %v, usually %d", peak, every, usual)
					if peak > 3*usual {
						t.Errorf("%d statements within %v, usually %d", peak, every, usual)
					}
				})
			})
		}
	}
}

// busiest returns the most sends within any stretch of time.
func busiest(sends []send, stretch time.Duration) (most int) {
	first := 0
	for last := range sends {
		for sends[last].at.Sub(sends[first].at) >= stretch {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
