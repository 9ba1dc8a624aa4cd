package clienttest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// The key was passed to a waiter that died before it learned so: it is a dead holder, and costs
// what a dead holder costs.
func TestAKeyPassedToADeadWaiterExpires(t *testing.T) {
	Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := Take(t, clients[0], "k")
		dead := lease.Ticket{
			AcquireRequest: lease.AcquireRequest{Key: "k", Owner: lease.NewOwner(), TTL: TTL}, Priority: 10,
		}
		if _, err := s.Join(t.Context(), []lease.Ticket{dead}); err != nil {
			t.Fatal(err)
		}
		alive := WaitIn(t, t.Context(), clients[1], "k")
		unlocked := time.Now()
		Unlock(t, l)
		got := <-alive
		if got.Err != nil || got.Lock.Token() != l.Token()+2 {
			t.Fatalf("got %v, %v", got.Lock, got.Err)
		}
		if took := time.Since(unlocked); took < TTL || took > TTL+300*time.Millisecond {
			t.Errorf("after %v", took)
		}
	})
}

// A lease that another process passed on is trusted for as long as the store says, and renewed
// like any other.
func TestAPassedLeaseIsKept(t *testing.T) {
	Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		l := Take(t, clients[0], "k")
		waiting := WaitIn(t, t.Context(), clients[1], "k", rowlock.Note("me"))
		Unlock(t, l)
		got := <-waiting
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if d := time.Until(got.Lock.Deadline()); d > Trust || d < Trust-time.Second {
			t.Errorf("it is trusted for %v", d)
		}
		time.Sleep(10 * TTL)
		if r := Record(t, s, "k"); !r.Held || r.Token != got.Lock.Token() || !hasNote(r, "me") {
			t.Errorf("the row is %+v", r)
		}
		Unlock(t, got.Lock)
	})
}

func TestCloseLeavesNoTicket(t *testing.T) {
	Fairly(t, 2, func(t *testing.T, s *memstore.Store, clients []*rowlock.Client) {
		Take(t, clients[0], "k")
		mine := WaitIn(t, t.Context(), clients[0], "k")
		other := WaitIn(t, t.Context(), clients[1], "k")
		if err := clients[0].Close(); err != nil {
			t.Error(err)
		}
		WantIs(t, "Lock", (<-mine).Err, rowlock.ErrClosed)
		if got := <-other; got.Err != nil {
			t.Error(got.Err)
		}
		if awaited, _ := s.Awaited(t.Context(), lease.Owner{}, []string{"k"}); awaited[0] {
			t.Error("a ticket is left")
		}
	})
}

func TestFairWaitersCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		places := &counted{Store: s.Store}
		c := Client(t, places,
			&rowlock.Config{Fair: true, Reaper: rowlock.ReaperConfig{Off: true}, TTL: time.Minute})
		l := Another(t, s.Store, "k", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range race.Few(30, 300) {
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

// counted counts the requests of a fair client's waiters.
type counted struct {
	*memstore.Store
	n atomic.Int64
}

func (c *counted) QueuePositions(ctx context.Context, waiters []lease.Lease) ([]lease.QueuePosition, error) {
	c.n.Add(1)
	return c.Store.QueuePositions(ctx, waiters)
}

func (c *counted) Join(ctx context.Context, tickets []lease.Ticket) (bool, error) {
	c.n.Add(1)
	return c.Store.Join(ctx, tickets)
}

func (c *counted) Claim(ctx context.Context,
	reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	c.n.Add(1)
	return c.Store.Claim(ctx, reqs)
}

// The database is overloaded when the ticket is made: that passes.
func TestABusyDatabaseIsNoReasonNotToWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &busy{Store: memstore.New()}
		c := Client(t, s, &rowlock.Config{Fair: true, Reaper: rowlock.ReaperConfig{Off: true}})
		l := Take(t, c, "k")
		s.left.Store(3)
		waiting := WaitIn(t, t.Context(), c, "k")
		time.Sleep(time.Second)
		Unlock(t, l)
		if got := <-waiting; got.Err != nil || got.Lock.Token() != l.Token()+1 {
			t.Errorf("got %v, %v", got.Lock, got.Err)
		}
	})
}

type busy struct {
	*memstore.Store
	left atomic.Int32
}

func (b *busy) Join(ctx context.Context, tickets []lease.Ticket) (bool, error) {
	if b.left.Add(-1) >= 0 {
		return false, lease.ErrBusy
	}
	return b.Store.Join(ctx, tickets)
}

// joined is a script that calls late before every join but the first.
type joined struct {
	*Script
	joins atomic.Int64
	late  func()
}

func (j *joined) Join(ctx context.Context, tickets []lease.Ticket) (bool, error) {
	if j.joins.Add(1) > 1 {
		j.late()
	}
	return j.Store.Join(ctx, tickets)
}

// joining returns a fair client on such a store.
func joining(t *testing.T) (*joined, *rowlock.Client) {
	t.Helper()
	s := &joined{Script: NewScript()}
	return s, Client(t, s, &rowlock.Config{
		TTL: TTL, Fair: true, Reaper: rowlock.ReaperConfig{Off: true},
	})
}

// Callers that come one after the other have their heartbeats in one statement all the same: what
// waiting costs does not depend on how many wait.
func TestWaitersThatCameOneAfterTheOtherHaveOneHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, ttl, rounds = 20, 30 * time.Second, 10
		s, c := joining(t)
		s.late = func() {}
		l := Take(t, c, "k")
		ctx, cancel := context.WithCancel(t.Context())
		var waiting []<-chan Waited
		for range n {
			waiting = append(waiting, WaitIn(t, ctx, c, "k", rowlock.TTL(ttl)))
			time.Sleep(ttl / 3 / n)
		}
		before := s.joins.Load()
		time.Sleep(rounds * ttl)
		// A ticket needs three in a TTL, and has six at most.
		if made := s.joins.Load() - before; made < 3*rounds-1 || made > 6*rounds {
			t.Errorf("%d waiters had %d heartbeats in %d TTLs", n, made, rounds)
		}
		cancel()
		for _, w := range waiting {
			WantIs(t, "Lock", (<-w).Err, context.Canceled)
		}
		Unlock(t, l)
	})
}

// A waiter keeps its place however long it waits: with a TTL shorter than the pauses between polls
// its ticket died at every heartbeat, and all that came later were served first.
func TestAWaiterKeepsItsPlaceBetweenItsPolls(t *testing.T) {
	for name, of := range map[string]struct{ ttl, pollMax, waits time.Duration }{
		"a short TTL":    {200 * time.Millisecond, 250 * time.Millisecond, 10 * time.Second},
		"a long PollMax": {TTL, 2 * TTL, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				client := func(pollMax time.Duration) *rowlock.Client {
					return Client(t, s, &rowlock.Config{
						Fair: true, PollMax: pollMax, Reaper: rowlock.ReaperConfig{Off: true},
					})
				}
				others := client(0)
				l := Take(t, others, "k", rowlock.TTL(time.Hour))
				first := WaitIn(t, t.Context(), client(of.pollMax), "k", rowlock.TTL(of.ttl))
				time.Sleep(of.waits)
				second := WaitIn(t, t.Context(), others, "k")
				time.Sleep(of.waits)
				Unlock(t, l)
				select {
				case got := <-first:
					if got.Err != nil {
						t.Fatal(got.Err)
					}
					Unlock(t, got.Lock)
					Unlock(t, (<-second).Lock)
				case got := <-second:
					t.Error("the waiter that came later has the key")
					Unlock(t, got.Lock)
					Unlock(t, (<-first).Lock)
				}
			})
		})
	}
}

// A heartbeat that is written after its waiter has left makes its ticket anew, and no waiter
// would claim it.
func TestAHeartbeatThatComesLateLeavesNoTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := joining(t)
		l := Take(t, c, "k")
		ctx, cancel := context.WithCancel(t.Context())
		s.late = func() {
			cancel()
			synctest.Wait() // until it has taken its ticket back
		}
		waiting := WaitIn(t, ctx, c, "k")
		WantIs(t, "Lock", (<-waiting).Err, context.Canceled)
		time.Sleep(time.Second)
		if s.joins.Load() != 2 {
			t.Fatal("there was no heartbeat")
		}
		Unlock(t, l)
		if IsHeld(t, s, "k") {
			t.Error("the key was passed on without a waiter")
		}
	})
}

// The key is passed to a waiter at the moment when its context ends, and while its heartbeat is
// under way. The grant wins, and the heartbeat does not take it away again.
func TestAGrantThatRacesWithCancellationWins(t *testing.T) {
	// On one processor the waiter runs after both, unless it is preempted.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	won := 0
	for range 16 {
		synctest.Test(t, func(t *testing.T) {
			s, c := joining(t)
			l := Take(t, c, "k")
			ctx, cancel := context.WithCancel(t.Context())
			s.late = func() {
				cancel()
				Unlock(t, l)
				synctest.Wait() // until the waiter has returned
			}
			got := <-WaitIn(t, ctx, c, "k")
			if got.Err != nil {
				WantIs(t, "a waiter that left before the grant", got.Err, context.Canceled)
				return
			}
			won++
			s.late = func() {}
			time.Sleep(2 * TTL)
			WantAlive(t, got.Lock)
			Unlock(t, got.Lock)
		})
	}
	if won == 0 {
		t.Error("no grant raced with a cancellation")
	}
}
