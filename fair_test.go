package rowlock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

func TestFairWaitersAreServedInTheOrderTheyCame(t *testing.T) {
	clienttest.Fairly(t, 4, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		const n = 200
		l := clienttest.Take(t, clients[0], "k")
		var mu sync.Mutex
		var got []int
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				l, err := clients[i%len(clients)].Lock(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				got = append(got, i)
				mu.Unlock()
				clienttest.Unlock(t, l)
			})
			synctest.Wait()
			time.Sleep(time.Microsecond)
		}
		began := time.Now()
		clienttest.Unlock(t, l)
		wg.Wait()
		if !slices.IsSorted(got) || len(got) != n {
			t.Errorf("served in the order %v", got)
		}
		t.Logf("%d waiters were served in %v", n, time.Since(began))
	})
}

func TestPriorityGoesFirst(t *testing.T) {
	clienttest.Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := clienttest.Take(t, clients[0], "k")
		var waits []<-chan clienttest.Waited
		for i, priority := range []int{1, 5, 10} {
			waits = append(waits,
				clienttest.WaitIn(t, t.Context(), clients[i%2], "k", rowlock.Priority(priority)))
			time.Sleep(time.Second)
		}
		clienttest.Unlock(t, l)
		for i, w := range slices.Backward(waits) {
			got := <-w
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			synctest.Wait()
			for _, other := range waits[:i] {
				if len(other) > 0 {
					t.Error("a lower priority was served at the same time")
				}
			}
			clienttest.Unlock(t, got.Lock)
		}
	})
}

// Each level of priority is a head start of a fixed time, and no more.
func TestNoWaiterIsOvertakenForEver(t *testing.T) {
	clienttest.Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := clienttest.Take(t, clients[0], "k")
		old := clienttest.WaitIn(t, t.Context(), clients[0], "k", rowlock.Priority(1))
		time.Sleep(9*lease.PriorityStep + time.Second)
		clienttest.WaitIn(t, t.Context(), clients[1], "k", rowlock.Priority(10))
		clienttest.Unlock(t, l)
		got := <-old
		if got.Err != nil || got.Lock.Token() != l.Token()+1 {
			t.Errorf("got %v, %v", got.Lock, got.Err)
		}
	})
}

// A newcomer does not overtake waiters, neither with TryLock nor with Lock, also while the key is
// free for a moment.
func TestNewcomersDoNotBarge(t *testing.T) {
	clienttest.Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		ticket := lease.Ticket{
			AcquireRequest: lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: time.Hour},
			Priority:       5,
		}
		if _, err := s.Join(t.Context(), []lease.Ticket{ticket}); err != nil {
			t.Fatal(err)
		}
		_, err := clients[0].TryLock(t.Context(), "k")
		clienttest.WantIs(t, "TryLock", err, rowlock.ErrHeld)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = clients[0].Lock(ctx, "k")
		clienttest.WantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded)
	})
}

// One waiter dies. The other waiters are served when its ticket has expired, and it is passed
// over.
func TestDeadWaitersArePassedOver(t *testing.T) {
	clienttest.Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := clienttest.Take(t, clients[0], "k")
		dead := lease.Ticket{
			AcquireRequest: lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: clienttest.TTL},
			Priority:       10,
		}
		if _, err := s.Join(t.Context(), []lease.Ticket{dead}); err != nil {
			t.Fatal(err)
		}
		alive := clienttest.WaitIn(t, t.Context(), clients[1], "k")
		time.Sleep(2 * clienttest.TTL) // the living show signs of life meanwhile
		unlocked := time.Now()
		clienttest.Unlock(t, l)
		got := <-alive
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if late := time.Since(unlocked); late > 300*time.Millisecond {
			t.Errorf("served %v after the unlock", late)
		}
	})
}

func TestAFairWaiterThatGivesUpLeavesNothing(t *testing.T) {
	clienttest.Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := clienttest.Take(t, clients[0], "k", rowlock.Note("holder"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := clients[1].Lock(ctx, "k")
		clienttest.WantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded)
		if awaited, _ := s.Awaited(t.Context(), lease.Owner{}, []string{"k"}); awaited[0] {
			t.Error("a ticket is left")
		}
		clienttest.Unlock(t, l)
		if clienttest.IsHeld(t, s, "k") {
			t.Error("the key stays held without a holder")
		}
	})
}

func TestAFairWaitIsShown(t *testing.T) {
	clienttest.Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		clienttest.Take(t, clients[0], "k", rowlock.Note("nightly-report on web-3"))
		clienttest.WaitIn(t, t.Context(), clients[0], "k")
		var mu sync.Mutex
		var last rowlock.Waiting
		clienttest.WaitIn(t, t.Context(), clients[1], "k", rowlock.OnWait(func(w rowlock.Waiting) {
			mu.Lock()
			defer mu.Unlock()
			last = w
		}))
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if last.Ahead != 1 || last.Holder != "nightly-report on web-3" || last.Remaining <= 0 {
			t.Errorf("shown %+v", last)
		}
	})
}
