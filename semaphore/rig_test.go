package semaphore_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/semaphore"
)

// bubble runs f with a store in virtual time.
func bubble(t *testing.T, f func(t *testing.T, s *clienttest.Script)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, clienttest.NewScript()) })
}

// process is a semaphore as another process would have it.
func process(t *testing.T, s lease.Store, limit int, opts ...semaphore.Option) *semaphore.Semaphore {
	t.Helper()
	return of(t, clienttest.Client(t, s, nil), limit, opts...)
}

// fair is process with a Fair client.
func fair(t *testing.T, s lease.Store, limit int) *semaphore.Semaphore {
	t.Helper()
	cfg := &rowlock.Config{Fair: true}
	cfg.Reaper.Off = true
	return of(t, clienttest.Client(t, s, cfg), limit, semaphore.InOrder())
}

func of(t *testing.T, c *rowlock.Client, limit int, opts ...semaphore.Option) *semaphore.Semaphore {
	t.Helper()
	sem, err := semaphore.New(c, "s", limit, opts...)
	ok(t, err)
	return sem
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// take acquires n slots that are free.
func take(t *testing.T, s *semaphore.Semaphore, n int) *semaphore.Permit {
	t.Helper()
	p, err := s.TryAcquire(t.Context(), n)
	if err != nil {
		t.Fatalf("%d permits: %v", n, err)
	}
	if len(p.Slots()) != n {
		t.Fatalf("a permit for %d has %+v", n, p.Slots())
	}
	return p
}

func full(t *testing.T, s *semaphore.Semaphore, n int) {
	t.Helper()
	p, err := s.TryAcquire(t.Context(), n)
	if err == nil {
		t.Fatalf("%d permits were granted: %+v", n, p.Slots())
	}
	clienttest.WantIs(t, "TryAcquire", err, rowlock.ErrHeld)
}

type got struct {
	p   *semaphore.Permit
	err error
}

// waits has a call wait for n slots.
func waits(t *testing.T, ctx context.Context, s *semaphore.Semaphore, n int) <-chan got {
	t.Helper()
	c := make(chan got, 1)
	go func() {
		p, err := s.Acquire(ctx, n)
		c <- got{p, err}
	}()
	synctest.Wait()
	return c
}

// granted returns the permit of a call, which must come within limit.
func granted(t *testing.T, c <-chan got, limit time.Duration) *semaphore.Permit {
	t.Helper()
	synctest.Wait()
	select {
	case g := <-c:
		ok(t, g.err)
		return g.p
	case <-time.After(max(limit, 1)):
		t.Fatalf("not granted within %s", limit)
		return nil
	}
}

func stillWaits(t *testing.T, c <-chan got, d time.Duration) {
	t.Helper()
	select {
	case g := <-c:
		t.Fatalf("did not wait: %+v", g)
	case <-time.After(d):
	}
}

// leases are the leases of a slot.
func leases(t *testing.T, s lease.Store, slot semaphore.Slot) []lease.Lease {
	return []lease.Lease{clienttest.Record(t, s, slot.Lock.Key()).Lease}
}
