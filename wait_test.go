package rowlock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

func TestLockWaitsForUnlock(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		first := clienttest.Take(t, c, "k")
		waiting := clienttest.Wait(t, c, "k")
		time.Sleep(10 * clienttest.TTL)
		unlocked := time.Now()
		if err := first.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := <-waiting
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if took := time.Since(unlocked); took > 375*time.Millisecond { // PollMax and its jitter
			t.Errorf("got it %v after it was free", took)
		}
	})
}

// The holder is dead. The waiter does not sleep far past the expiry that it knows.
func TestLockTakesOverFromADeadHolder(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		dead := clienttest.Another(t, s, "k", clienttest.TTL)
		began := time.Now()
		l, err := c.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		// PollMin and its jitter
		if took := time.Since(began); took < clienttest.TTL || took > clienttest.TTL+20*time.Millisecond {
			t.Errorf("took over after %v of a lease of %v", took, clienttest.TTL)
		}
		if l.Token() <= dead.Token {
			t.Errorf("token %d after %d", l.Token(), dead.Token)
		}
	})
}

func TestCanceledWaitReportsBothReasons(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		clienttest.Take(t, c, "k", rowlock.Note("a holder"))
		began := time.Now()

		ctx, cancel := context.WithTimeout(t.Context(), 100*clienttest.TTL+1)
		defer cancel()
		_, err := c.Lock(ctx, "k")
		clienttest.WantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded)
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("not one line: %q", err)
		}
		if took := time.Since(began); took != 100*clienttest.TTL+1 {
			t.Errorf("returned after %v", took)
		}
		var held *rowlock.HeldError
		if !errors.As(err, &held) || held.Note != "a holder" || held.Remaining <= 0 {
			t.Errorf("of the holder it says %#v", held)
		}

		ctx, cancel = context.WithCancel(t.Context())
		waiting := clienttest.WaitIn(t, ctx, c, "k")
		cancel()
		clienttest.WantIs(t, "Lock", (<-waiting).Err, rowlock.ErrHeld, context.Canceled)
	})
}

func TestWaitersOfAClientAreServedInOrderByHandOver(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		const n = 100
		l := clienttest.Take(t, c, "k")
		q := clienttest.Queue(t, c, "k", n, 0)
		acquires, _, _ := s.Calls()
		clienttest.Unlock(t, l)
		q.Served.Wait()
		if !slices.IsSorted(q.Order) || len(q.Order) != n {
			t.Errorf("served in the order %v", q.Order)
		}
		for i, token := range q.Tokens {
			if want := l.Token() + lease.Token(i) + 1; token != want {
				t.Fatalf("waiter %d has token %d, want %d", i, token, want)
			}
		}
		more, _, releases := s.Calls()
		if len(s.HandOvers) != n || releases != 1 || more != acquires {
			t.Errorf("%d hand-overs, %d releases, %d acquires for %d waiters", len(s.HandOvers), releases,
				more-acquires, n)
		}
	})
}

// The statements of a thousand waiters depend neither on their number nor on the number of their
// keys.
func TestWaitersCostNothing(t *testing.T) {
	for name, keys := range map[string]int{"one key": 1, "a thousand keys": 1000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := clienttest.NewScript()
				c := clienttest.Client(t, s, nil)
				for i := range keys {
					clienttest.Another(t, s.Store, fmt.Sprint("k", i), time.Hour)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var wg sync.WaitGroup
				for i := range 1000 {
					wg.Go(func() { _, _ = c.Lock(ctx, fmt.Sprint("k", i%keys)) })
				}
				synctest.Wait()
				if bids, _, _ := s.Calls(); bids != keys {
					t.Errorf("%d bids of 1000 waiters for %d keys", bids, keys)
				}
				time.Sleep(10 * time.Second) // until the holds are old
				bids, _, _ := s.Calls()
				polls := s.Polled()
				time.Sleep(100 * time.Second)
				more, _, _ := s.Calls()
				if n := s.Polled() - polls + more - bids; n > 500 {
					t.Errorf("%d statements in 100 s", n)
				}
				if n := s.Polled() - polls; n < 300 {
					t.Errorf("only %d polls in 100 s", n)
				}
				cancel()
				wg.Wait()
			})
		})
	}
}

// A key that another process releases is taken soon after, whatever the hold was: the next poll
// comes after a quarter of the hold.
func TestAWaiterFindsAKeyReleasedElsewhere(t *testing.T) {
	for _, hold := range []time.Duration{
		5 * time.Millisecond, 100 * time.Millisecond, time.Second, 20 * time.Second,
	} {
		clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
			l := clienttest.Another(t, s.Store, "k", time.Hour)
			waiting := clienttest.WaitIn(t, t.Context(), c, "k")
			time.Sleep(hold)
			_, _ = s.Store.Release(t.Context(), []lease.Lease{l})
			freed := time.Now()
			got := <-waiting
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			if late, most := time.Since(freed),
				min(max(hold/2, 12*time.Millisecond), 280*time.Millisecond); late > most {
				t.Errorf("after a hold of %v it was taken %v late", hold, late)
			}
		})
	}
}

// A holder has died; its lease ends at a time that is known.
func TestAWaiterTakesAnExpiredLeaseAtOnce(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		began := time.Now()
		clienttest.Another(t, s.Store, "k", clienttest.TTL)
		if _, err := c.Lock(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(began) - clienttest.TTL; late > 5*time.Millisecond {
			t.Errorf("%v after it expired", late)
		}
	})
}

func TestWaitingIsShown(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		l := clienttest.Take(t, c, "k", rowlock.Note("nightly-report on web-3"))
		clienttest.WaitIn(t, t.Context(), c, "k", rowlock.Note("first"))
		clienttest.WaitIn(t, t.Context(), c, "k", rowlock.Note("second"))
		var mu sync.Mutex
		var shown []rowlock.Waiting
		clienttest.WaitIn(t, t.Context(), c, "k", rowlock.OnWait(func(w rowlock.Waiting) {
			mu.Lock()
			defer mu.Unlock()
			shown = append(shown, w)
		}))
		last := func() rowlock.Waiting {
			mu.Lock()
			defer mu.Unlock()
			if len(shown) == 0 {
				return rowlock.Waiting{}
			}
			return shown[len(shown)-1]
		}
		time.Sleep(time.Second)
		if w := last(); w.Ahead != 2 || w.Holder != "nightly-report on web-3" || w.Remaining <= 0 ||
			w.Since <= 0 {
			t.Errorf("shown %+v", w)
		}
		_ = l.Unlock(t.Context())
		time.Sleep(time.Second)
		if w := last(); w.Ahead != 1 || w.Holder != "first" {
			t.Errorf("then shown %+v", w)
		}
	})
}
