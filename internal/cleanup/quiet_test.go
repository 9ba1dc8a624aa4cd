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
