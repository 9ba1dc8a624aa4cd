package memstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// In a bubble time stands still between sleeps, so that the very moment of an expiry can be looked
// at.

func take(t *testing.T, s *memstore.Store, key string, ttl time.Duration) (lease.Lease, bool) {
	t.Helper()
	q := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: ttl}
	got, err := s.Acquire(t.Context(), []lease.AcquireRequest{q})
	if err != nil || got[0].Err != nil {
		t.Fatalf("acquire %q: %+v, %v", key, got, err)
	}
	return lease.Lease{Key: key, Owner: q.Owner, Token: got[0].Token}, got[0].Granted
}

func renew(t *testing.T, s *memstore.Store, l lease.Lease, ttl time.Duration) lease.RenewOutcome {
	t.Helper()
	got, err := s.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: ttl}})
	if err != nil || got[0].Err != nil {
		t.Fatalf("renew %q: %+v, %v", l.Key, got, err)
	}
	return got[0].Outcome
}

func TestLeaseEndsExactlyAfterItsTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l, _ := take(t, s, "k", time.Second)
		time.Sleep(time.Second - 1)
		if _, granted := take(t, s, "k", time.Second); granted {
			t.Error("granted a nanosecond before the lease ends")
		}
		if got := renew(t, s, l, 2*time.Second); got != lease.Extended {
			t.Errorf("renew a nanosecond before the end: %v", got)
		}
		time.Sleep(2 * time.Second)
		if got := renew(t, s, l, time.Second); got != lease.Lost {
			t.Errorf("renew at the end: %v", got)
		}
		if next, granted := take(t, s, "k", time.Second); !granted || next.Token <= l.Token {
			t.Errorf("acquire at the end: granted %t with token %d", granted, next.Token)
		}
	})
}

func TestRepeatedAcquireDoesNotExtend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l, _ := take(t, s, "k", time.Second)
		time.Sleep(time.Second / 2)
		again := []lease.AcquireRequest{{Key: "k", Owner: l.Owner, TTL: time.Second}}
		if got, err := s.Acquire(t.Context(), again); err != nil || !got[0].Granted {
			t.Fatalf("repeated acquire: %+v, %v", got, err)
		}
		time.Sleep(time.Second / 2)
		if got := renew(t, s, l, time.Second); got != lease.Lost {
			t.Errorf("renew after the first TTL: %v", got)
		}
	})
}

func TestSweepCountsTheRetentionFromDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		take(t, s, "expires in 1 s", time.Second)
		released, _ := take(t, s, "released at once", time.Hour)
		if _, err := s.Release(t.Context(), []lease.Lease{released}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, want := range []struct{ removed, rows int }{{1, 1}, {0, 1}, {1, 0}} {
			n, err := s.Sweep(t.Context(), lease.SweepOptions{Retention: time.Minute, Batch: 10})
			if err != nil || int(n) != want.removed || s.Rows() != want.rows {
				t.Errorf("sweep removed %d and left %d rows, %v; want %+v", n, s.Rows(), err, want)
			}
			time.Sleep(time.Second / 2)
		}
	})
}

func TestSweepPausesBetweenBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			take(t, s, key, time.Second)
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		n, err := s.Sweep(ctx, lease.SweepOptions{Batch: 2, Pause: time.Minute})
		if n != 4 || !errors.Is(err, context.DeadlineExceeded) || s.Rows() != 1 {
			t.Errorf("sweep removed %d and left %d rows, %v", n, s.Rows(), err)
		}
		if n, err := s.Sweep(t.Context(), lease.SweepOptions{}); n != 1 || err != nil {
			t.Errorf("a sweep without batches removed %d, %v", n, err)
		}
	})
}

func TestClockRunsWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		l, _ := take(t, s, "k", time.Hour)
		clock := func() time.Duration {
			got, err := s.Renew(t.Context(), []lease.RenewRequest{{Lease: l, TTL: time.Hour}})
			if err != nil {
				t.Fatal(err)
			}
			return got[0].Clock
		}
		before := clock()
		time.Sleep(time.Minute)
		if went := clock() - before; went != time.Minute {
			t.Errorf("the clock went on by %v in a minute", went)
		}
	})
}

// A moment of death in the future is that of tickets whose waiters are alive.
func TestANegativeRetentionIsRefused(t *testing.T) {
	s := memstore.New()
	ticket := lease.Ticket{Priority: 5}
	ticket.AcquireRequest = lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: time.Second}
	if _, err := s.Join(t.Context(), []lease.Ticket{ticket}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), lease.SweepOptions{Retention: -time.Hour}); !errors.Is(err, lease.ErrConfig) {
		t.Errorf("%v, want ErrConfig", err)
	}
	at, err := s.QueuePositions(t.Context(), []lease.Lease{{Key: "k", Owner: ticket.Owner}})
	if err != nil || at[0].Missing {
		t.Errorf("a waiter has lost its ticket: %+v, %v", at, err)
	}
}
