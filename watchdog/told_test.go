package watchdog_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// name is the key of a value in a lease's context.
type name struct{}

// told is one call of Renewed.
type told struct {
	leases int
	in     any
	took   time.Duration
}

func called(calls chan told) (all []told) {
	synctest.Wait()
	for len(calls) > 0 {
		all = append(all, <-calls)
	}
	return all
}

// A renewal is told of once, however many leases it extends, and a single lease by its context.
func TestRenewalsAreToldOfByTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan told, 100)
		var lost atomic.Bool
		slow := renewer(func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			time.Sleep(time.Millisecond)
			if lost.Load() {
				return all(reqs, lease.Lost)
			}
			return all(reqs, lease.Extended)
		})
		dog := watchdog.New(slow, watchdog.Config{
			Renewed: func(ctx context.Context, leases int, took time.Duration) {
				calls <- told{leases, ctx.Value(name{}), took}
			},
		})
		defer dog.Stop()
		in := func(h *watchdog.Held) {
			h.Holder = holder{h.Holder.End, context.WithValue(t.Context(), name{}, h.Key)}
		}
		keep(t, dog, "of the client", in, func(h *watchdog.Held) { h.Quiet = true })
		keep(t, dog, "a", in)
		time.Sleep(every + time.Second)
		if got := called(calls); !slices.Equal(got, []told{{1, "a", time.Millisecond}}) {
			t.Errorf("of one lease: %+v", got)
		}
		keep(t, dog, "b", in)
		keep(t, dog, "c", in)
		time.Sleep(10 * ttl) // some are renewed together, as the jitter has it
		got, together := called(calls), 0
		for _, call := range got {
			if (call.leases == 1) != (call.in != nil) || call.leases > 3 {
				t.Errorf("of three leases: %+v", call)
			}
			together = max(together, call.leases)
		}
		if together < 2 {
			t.Errorf("no two were renewed together: %+v", got)
		}
		lost.Store(true)
		time.Sleep(ttl)
		if got := called(calls); len(got) > 0 {
			t.Errorf("of leases that were lost: %+v", got)
		}
	})
}

// So is a failure: one lease by its context, several without.
func TestFailedRenewalsAreToldOfWithTheContextOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan told, 100)
		dog := watchdog.New(renewer(refuse), watchdog.Config{
			Failed: func(ctx context.Context, _ error, leases int) {
				calls <- told{leases: leases, in: ctx.Value(name{})}
			},
		})
		defer dog.Stop()
		in := func(h *watchdog.Held) {
			h.Holder = holder{h.Holder.End, context.WithValue(t.Context(), name{}, h.Key)}
		}
		a := keep(t, dog, "a", in)
		time.Sleep(every)
		if got := called(calls); !slices.Equal(got, []told{{leases: 1, in: "a"}}) {
			t.Errorf("of one lease: %+v", got)
		}
		dog.Drop(&a.Held)
		keep(t, dog, "b", in)
		keep(t, dog, "c", in)
		time.Sleep(ttl)
		for _, call := range called(calls) {
			if (call.leases == 1) != (call.in != nil) {
				t.Errorf("of two leases: %+v", call)
			}
		}
	})
}
