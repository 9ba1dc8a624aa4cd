package wait

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// eachWaking runs f on each database where a release can wake one process.
func eachWaking(t *testing.T, f func(s *servertest.Scene)) {
	servertest.EachServer(t, func(s *servertest.Scene) {
		if !s.Is("postgres", "mariadb", "mysql") {
			s.Skip("wakes no process")
		}
		f(s)
	})
}

// anyOf is the first lock of several calls that wait, each of which ends once.
func anyOf(s *servertest.Scene, waiting []<-chan got) got {
	s.Helper()
	first := make(chan got, 1)
	s.Eventually("a grant", func() bool {
		for _, w := range waiting {
			select {
			case g := <-w:
				first <- g
				return true
			default:
			}
		}
		return false
	})
	return granted(s, first)
}

// registered waits until n processes are registered as waiters for key and can be woken.
func registered(s *servertest.Scene, key string, n int) {
	s.Helper()
	s.Eventually("processes listen", func() bool {
		return s.Number(`SELECT count(*) FROM {rowlock_queue} WHERE {key} = ? AND note LIKE '%listens'`,
			[]byte(key)) >= int64(n)
	})
}

func TestAReleaseWakesOneWaitingProcess(t *testing.T) {
	eachWaking(t, func(s *servertest.Scene) {
		const processes = 4
		var lost atomic.Int64
		rare := func(c *rowlock.Config) { // each poll would be a bid in vain, too
			c.PollMin, c.PollMax = 4*time.Second, time.Minute
			c.Hooks.Contended = func(context.Context, string, *rowlock.HeldError) { lost.Add(1) }
		}
		l := s.Take(s.Client(), "hot")
		var waiting []<-chan got
		for range processes {
			waiting = append(waiting, waits(s, s.Context(), s.Client(rare), "hot"))
		}
		registered(s, "hot", processes)
		before := lost.Load() // of the first bids
		s.OK(l.Unlock(s.Context()))
		for range processes {
			g := anyOf(s, waiting)
			s.OK(g.l.Unlock(s.Context()))
		}
		if n := lost.Load() - before; n > 1 { // one may be on its way
			s.Errorf("%d bids were in vain for %d releases", n, processes+1)
		}
	})
}

// A process that is stopped is woken like any other, and does not bid. Nine that wait poll the less
// often, the longer the key is held: after up to a quarter of that.
func TestAStoppedProcessThatIsWokenDelaysTheRestByAPoll(t *testing.T) {
	eachWaking(t, func(s *servertest.Scene) {
		holder, waiter := s.Client(servertest.WithPoll(hintPoll)), s.Client(servertest.WithPoll(hintPoll))
		sleepers(s, "hot", 8, func() {})
		pulse := s.Pulse()
		for range 4 {
			taken := time.Now()
			l := s.Take(holder, "hot")
			waiting := waits(s, s.Context(), waiter, "hot")
			registered(s, "hot", 9)
			freed := time.Now()
			s.OK(l.Unlock(s.Context()))
			g := granted(s, waiting)
			limit := pulse.Allow(2*hintPoll + g.at.Sub(taken)/4 + waitSlack)
			if took := g.at.Sub(freed); took > limit {
				s.Errorf("granted %s after the release, want at most %s", took, limit)
			}
			s.OK(g.l.Unlock(s.Context()))
		}
	})
}

// sleepers are processes that are registered as waiters for key and never bid. woken is called
// for each message to one alone.
func sleepers(s *servertest.Scene, key string, n int, woken func()) {
	s.Helper()
	store, _, err := table.Open(s.Context(), s.Env.Pool(s), s.Env.Dialect,
		table.Options{Connections: 2, Timeout: 5 * time.Second, Hints: true})
	s.OK(err)
	s.Cleanup(func() { s.OK(store.Close()) })
	for range n {
		process, listens := lease.NewOwner(), make(chan struct{}, 1)
		go func() {
			_ = store.ListenAs(s.Context(), process, func(_ string, chosen bool) {
				if chosen {
					woken()
					return
				}
				select {
				case listens <- struct{}{}:
				default:
				}
			})
		}()
		<-listens
		s.OK(store.Register(s.Context(), process, "", []string{key}, time.Minute))
	}
}

// Processes that waited a moment ago are still registered.
func TestAProcessThatIsWokenInVainWakesTheNext(t *testing.T) {
	eachWaking(t, func(s *servertest.Scene) {
		slow := func(c *rowlock.Config) { c.PollMin, c.PollMax = 100*time.Millisecond, time.Minute }
		holder, waiter := s.Client(slow), s.Client(slow)
		var idle []*rowlock.Client
		for range 4 {
			idle = append(idle, s.Client(slow))
		}
		l := s.Take(holder, "hot")
		var waiting []<-chan got
		for _, c := range append(idle, waiter) {
			waiting = append(waiting, waits(s, s.Context(), c, "hot"))
		}
		registered(s, "hot", len(waiting))
		s.OK(l.Unlock(s.Context()))
		for range waiting {
			s.OK(anyOf(s, waiting).l.Unlock(s.Context()))
		}
		l = s.Take(holder, "hot")
		aged(s, "hot") // so that it is polled every PollMax
		last := waits(s, s.Context(), waiter, "hot")
		s.Elapse(time.Second)
		freed := time.Now()
		s.OK(l.Unlock(s.Context()))
		g := granted(s, last)
		if took := g.at.Sub(freed); took > servertest.Patience/2 {
			s.Errorf("granted %s after the release, as if no process had been woken", took)
		}
		s.OK(g.l.Unlock(s.Context()))
	})
}

// A registration that outlived its client would be woken instead of a waiter, again and again.
func TestAClosedClientIsNotRegisteredAnyMore(t *testing.T) {
	eachWaking(t, func(s *servertest.Scene) {
		holder := s.Client(servertest.WithPoll(hintPoll))
		for range 5 {
			// Lock might wait for its turn, and register the holder
			l, err := holder.TryLock(s.Context(), "hot")
			s.OK(err)
			c := s.Client(servertest.WithPoll(hintPoll))
			ctx, leave := context.WithCancel(s.Context())
			waiting := waits(s, ctx, c, "hot")
			registered(s, "hot", 1)
			leave()
			<-waiting
			s.OK(l.Unlock(s.Context())) // wakes it in vain, so that it takes back its registration
			s.OK(c.Close())
			left := s.Number(`SELECT count(*) FROM {rowlock_queue} WHERE {key} = ?`, []byte("hot"))
			if left != 0 {
				s.Fatalf("%d registrations are left of a client that was closed", left)
			}
		}
	})
}
