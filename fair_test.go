package rowlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// fairly runs a test with some fair clients on one store, as so many processes.
func fairly(t *testing.T, n int, f func(t *testing.T, s *memstore.Store, clients []*rowlock.Client)) {
	t.Helper()
	for _, hints := range []rowlock.Hints{rowlock.HintsOn, rowlock.HintsOff} {
		t.Run(fmt.Sprintf("hints %d", hints), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				var clients []*rowlock.Client
				for range n {
					clients = append(clients, client(t, s, &rowlock.Config{Fair: true, Hints: hints, Reaper: rowlock.ReaperConfig{Off: true}}))
				}
				f(t, s, clients)
			})
		})
	}
}

func TestFairWaitersAreServedInTheOrderTheyCame(t *testing.T) {
	fairly(t, 4, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		const n = 200
		l := take(t, clients[0], "k")
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
				unlock(t, l)
			})
			synctest.Wait()
			time.Sleep(time.Microsecond)
		}
		began := time.Now()
		unlock(t, l)
		wg.Wait()
		if !slices.IsSorted(got) || len(got) != n {
			t.Errorf("served in the order %v", got)
		}
		t.Logf("%d waiters were served in %v", n, time.Since(began))
	})
}

func TestPriorityGoesFirst(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := take(t, clients[0], "k")
		var waits []<-chan waited
		for i, priority := range []int{1, 5, 10} {
			waits = append(waits, waitIn(t, t.Context(), clients[i%2], "k", rowlock.Priority(priority)))
			time.Sleep(time.Second)
		}
		unlock(t, l)
		for i, w := range slices.Backward(waits) {
			got := <-w
			if got.err != nil {
				t.Fatal(got.err)
			}
			synctest.Wait()
			for _, other := range waits[:i] {
				if len(other) > 0 {
					t.Error("a lower priority was served at the same time")
				}
			}
			unlock(t, got.l)
		}
	})
}

// Each level of priority is a head start of so much time, and no more.
func TestNobodyIsOvertakenForEver(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := take(t, clients[0], "k")
		old := waitIn(t, t.Context(), clients[0], "k", rowlock.Priority(1))
		time.Sleep(9*lease.PriorityStep + time.Second)
		waitIn(t, t.Context(), clients[1], "k", rowlock.Priority(10))
		unlock(t, l)
		got := <-old
		if got.err != nil || got.l.Token() != l.Token()+1 {
			t.Errorf("got %v, %v", got.l, got.err)
		}
	})
}

// A newcomer does not overtake those who wait, neither with TryLock nor with Lock, also while the key is free for a moment.
func TestNewcomersDoNotBarge(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		ticket := lease.Ticket{AcquireRequest: lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: time.Hour}, Priority: 5}
		if err := s.Join(t.Context(), []lease.Ticket{ticket}); err != nil {
			t.Fatal(err)
		}
		_, err := clients[0].TryLock(t.Context(), "k")
		wantIs(t, "TryLock", err, rowlock.ErrHeld)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = clients[0].Lock(ctx, "k")
		wantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded)
	})
}

// Who waits dies; the others are served when its ticket has, and it is passed over.
func TestTheDeadArePassedOver(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := take(t, clients[0], "k")
		dead := lease.Ticket{AcquireRequest: lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}, Priority: 10}
		if err := s.Join(t.Context(), []lease.Ticket{dead}); err != nil {
			t.Fatal(err)
		}
		alive := waitIn(t, t.Context(), clients[1], "k")
		time.Sleep(2 * ttl) // the living show signs of life meanwhile
		unlocked := time.Now()
		unlock(t, l)
		got := <-alive
		if got.err != nil {
			t.Fatal(got.err)
		}
		if late := time.Since(unlocked); late > 300*time.Millisecond {
			t.Errorf("served %v after the unlock", late)
		}
	})
}

// The key was passed to one who died before he knew: he is a dead holder, and costs what a dead holder costs.
func TestAKeyPassedToTheDeadComesFree(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := take(t, clients[0], "k")
		dead := lease.Ticket{AcquireRequest: lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: ttl}, Priority: 10}
		if err := s.Join(t.Context(), []lease.Ticket{dead}); err != nil {
			t.Fatal(err)
		}
		alive := waitIn(t, t.Context(), clients[1], "k")
		unlocked := time.Now()
		unlock(t, l)
		got := <-alive
		if got.err != nil || got.l.Token() != l.Token()+2 {
			t.Fatalf("got %v, %v", got.l, got.err)
		}
		if took := time.Since(unlocked); took < ttl || took > ttl+300*time.Millisecond {
			t.Errorf("after %v", took)
		}
	})
}

// A lease that another process passed is trusted for as long as the store says, and renewed like any other.
func TestAPassedLeaseIsKept(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := take(t, clients[0], "k")
		waiting := waitIn(t, t.Context(), clients[1], "k", rowlock.Note("me"))
		unlock(t, l)
		got := <-waiting
		if got.err != nil {
			t.Fatal(got.err)
		}
		if d := time.Until(got.l.Deadline()); d > trust || d < trust-time.Second {
			t.Errorf("it is trusted for %v", d)
		}
		time.Sleep(10 * ttl)
		if r := record(t, s, "k"); !r.Held || r.Token != got.l.Token() || r.Note != "me" {
			t.Errorf("the row is %+v", r)
		}
		unlock(t, got.l)
	})
}

func TestAFairWaiterWhoGivesUpLeavesNothing(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := take(t, clients[0], "k", rowlock.Note("holder"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := clients[1].Lock(ctx, "k")
		wantIs(t, "Lock", err, rowlock.ErrHeld, context.DeadlineExceeded)
		if awaited, _ := s.Awaited(t.Context(), lease.Owner{}, []string{"k"}); awaited[0] {
			t.Error("a ticket is left")
		}
		unlock(t, l)
		if isHeld(t, s, "k") {
			t.Error("the key went to nobody")
		}
	})
}

func TestCloseLeavesNoTicket(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		take(t, clients[0], "k")
		mine := waitIn(t, t.Context(), clients[0], "k")
		other := waitIn(t, t.Context(), clients[1], "k")
		if err := clients[0].Close(); err != nil {
			t.Error(err)
		}
		wantIs(t, "Lock", (<-mine).err, rowlock.ErrClosed)
		if got := <-other; got.err != nil {
			t.Error(got.err)
		}
		if awaited, _ := s.Awaited(t.Context(), lease.Owner{}, []string{"k"}); awaited[0] {
			t.Error("a ticket is left")
		}
	})
}

func TestFairWaitersCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript()
		places := &counted{Store: s.Store}
		c := client(t, places, &rowlock.Config{Fair: true, Reaper: rowlock.ReaperConfig{Off: true}, TTL: time.Minute})
		l := another(t, s.Store, "k", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() { _, _ = c.Lock(ctx, "k") })
		}
		time.Sleep(10 * time.Second)
		before := places.n.Load()
		time.Sleep(40 * time.Second)
		if n := places.n.Load() - before; n > 200 {
			t.Errorf("%d statements in 40 s", n)
		}
		cancel()
		wg.Wait()
		_, _ = s.Store.Release(t.Context(), []lease.Lease{l})
	})
}

func TestAFairWaitIsShown(t *testing.T) {
	fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		take(t, clients[0], "k", rowlock.Note("nightly-report on web-3"))
		waitIn(t, t.Context(), clients[0], "k")
		var mu sync.Mutex
		var last rowlock.Waiting
		waitIn(t, t.Context(), clients[1], "k", rowlock.OnWait(func(w rowlock.Waiting) {
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

// counted counts what the waiters of a fair client ask.
type counted struct {
	*memstore.Store
	n atomic.Int64
}

func (c *counted) Places(ctx context.Context, waiters []lease.Lease) ([]lease.Place, error) {
	c.n.Add(1)
	return c.Store.Places(ctx, waiters)
}

func (c *counted) Join(ctx context.Context, tickets []lease.Ticket) error {
	c.n.Add(1)
	return c.Store.Join(ctx, tickets)
}

func (c *counted) Claim(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	c.n.Add(1)
	return c.Store.Claim(ctx, reqs)
}

// The database has its hands full when the ticket is to be made: that passes.
func TestABusyDatabaseIsNoReasonNotToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busy{Store: memstore.New()}
		c := client(t, s, &rowlock.Config{Fair: true, Reaper: rowlock.ReaperConfig{Off: true}})
		l := take(t, c, "k")
		s.left.Store(3)
		waiting := waitIn(t, t.Context(), c, "k")
		time.Sleep(time.Second)
		unlock(t, l)
		if got := <-waiting; got.err != nil || got.l.Token() != l.Token()+1 {
			t.Errorf("got %v, %v", got.l, got.err)
		}
	})
}

type busy struct {
	*memstore.Store
	left atomic.Int32
}

func (b *busy) Join(ctx context.Context, tickets []lease.Ticket) error {
	if b.left.Add(-1) >= 0 {
		return lease.ErrBusy
	}
	return b.Store.Join(ctx, tickets)
}
