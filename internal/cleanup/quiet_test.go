package cleanup_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// down refuses to release while it is down.
type down struct {
	*memstore.Store
	is atomic.Bool
}

func (d *down) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	if d.is.Load() {
		return nil, errors.New("down")
	}
	return d.Store.Release(ctx, leases)
}

// Calls that fail leave an orphan each, and each has a round at once. An outage is told when it
// begins, and then more and more seldom, with how often a release has failed.
func TestAnOutageOfManyRoundsIsLoggedAFewTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := &down{Store: memstore.New()}, &clienttest.Journal{}
		s.is.Store(true)
		c := cleanup.Start(adapter.Of(s), false, slog.New(slog.NewTextHandler(log, nil)))
		lines := func() int { return strings.Count(log.String(), "trying again") }
		c.AddLeases(lease.Lease{Key: "k", Owner: lease.NewOwner()})
		synctest.Wait()
		if lines() != 1 {
			t.Errorf("the first failure has %d lines", lines())
		}
		for range 300 {
			c.AddLeases(lease.Lease{Key: "k", Owner: lease.NewOwner()})
			time.Sleep(100 * time.Millisecond)
		}
		// After 1, 2, 4, 8 and 16 s more.
		if n := lines(); n < 4 || n > 6 {
			t.Errorf("an outage of 30 s has %d lines", n)
		}
		if !strings.Contains(log.String(), "times=1 ") || strings.Count(log.String(), "times=1 ") == lines() {
			t.Errorf("the lines do not count: %s", log)
		}
		s.is.Store(false)
		time.Sleep(time.Second)
		before := lines()
		s.is.Store(true)
		c.AddLeases(lease.Lease{Key: "k", Owner: lease.NewOwner()})
		synctest.Wait()
		if lines() != before+1 {
			t.Errorf("the next outage has %d lines at its beginning", lines()-before)
		}
		s.is.Store(false)
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// unqueued is a store whose tickets cannot be removed: a right is missing, or rows are locked.
type unqueued struct{ *memstore.Store }

func (unqueued) Leave(context.Context, []lease.Lease) error { return errors.New("tickets are locked") }

func TestAnOrphanIsReleasedThoughItsTicketCannotBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := unqueued{memstore.New()}, &clienttest.Journal{}
		q := lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: time.Hour}
		if got, err := s.Acquire(t.Context(), []lease.AcquireRequest{q}); err != nil || !got[0].Granted {
			t.Fatal(got, err)
		}
		c := cleanup.Start(adapter.Of(s), true, slog.New(slog.NewTextHandler(log, nil)))
		c.AddLeases(lease.Lease{Key: "k", Owner: q.Owner})
		synctest.Wait()
		q.Owner = lease.NewOwner()
		if got, err := s.Acquire(t.Context(), []lease.AcquireRequest{q}); err != nil || !got[0].Granted {
			t.Errorf("the next owner: %+v, %v", got, err)
		}
		if !strings.Contains(log.String(), "tickets are locked") {
			t.Errorf("not logged: %s", log)
		}
		time.Sleep(time.Minute)
		if open, cleaned := c.Counts(); open != 1 || cleaned != 0 {
			t.Errorf("%d orphans, %d cleaned; its ticket may be granted yet", open, cleaned)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := c.Stop(ctx); err == nil {
			t.Error("Stop says that nothing is left")
		}
	})
}
