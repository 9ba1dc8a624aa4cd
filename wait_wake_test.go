package rowlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

func onPostgres(t *testing.T, f func(s *scene)) {
	eachServer(t, func(s *scene) {
		if !s.is("postgres") {
			s.Skip("has no messages")
		}
		f(s)
	})
}

// any is the first lock of several calls that wait, each of which ends once.
func (s *scene) any(waiting []<-chan got) got {
	s.Helper()
	first := make(chan got, 1)
	s.eventually("a grant", func() bool {
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
	return s.granted(first)
}

// hearing waits until so many processes have noted that they wait for key and can be woken.
func (s *scene) hearing(key string, n int) {
	s.Helper()
	queue := s.env.Dialect.Names().Table("rowlock_queue", `"`)
	s.eventually("processes listen", func() bool {
		var found int
		s.ok(s.env.DB.QueryRowContext(s.Context(), `SELECT count(*) FROM `+queue+` WHERE key = $1 AND note = 'hears'`, []byte(key)).Scan(&found))
		return found >= n
	})
}

func TestAReleaseWakesOneWaitingProcess(t *testing.T) {
	onPostgres(t, func(s *scene) {
		const processes = 4
		var lost atomic.Int64
		count := func(c *rowlock.Config) { c.Hooks.Contended = func(string, *rowlock.HeldError) { lost.Add(1) } }
		holder := s.client(withPoll(hintPoll))
		l := s.take(holder, "hot")
		var waiting []<-chan got
		for range processes {
			waiting = append(waiting, s.waits(s.Context(), s.client(withPoll(hintPoll), count), "hot"))
		}
		s.hearing("hot", processes)
		before := lost.Load() // of the first bids
		s.ok(l.Unlock(s.Context()))
		for range processes {
			g := s.any(waiting)
			s.ok(g.l.Unlock(s.Context()))
		}
		if n := lost.Load() - before; n > 1 { // a poll may come between
			s.Errorf("%d bids were in vain for %d releases", n, processes+1)
		}
	})
}

// A process that is stopped is woken like any other, and does not bid.
func TestAStoppedProcessThatIsWokenDelaysTheOthersByAPoll(t *testing.T) {
	onPostgres(t, func(s *scene) {
		holder, waiter := s.client(withPoll(hintPoll)), s.client(withPoll(hintPoll))
		s.sleepers("hot", 8, func() {})
		for range 4 {
			l := s.take(holder, "hot")
			waiting := s.waits(s.Context(), waiter, "hot")
			s.hearing("hot", 9)
			freed := time.Now()
			s.ok(l.Unlock(s.Context()))
			g := s.granted(waiting)
			if took, limit := g.at.Sub(freed), 2*hintPoll+waitSlack; took > limit {
				s.Errorf("granted %s after the release, want at most %s", took, limit)
			}
			s.ok(g.l.Unlock(s.Context()))
		}
	})
}

// sleepers are processes that wait for key, as far as anybody knows, and never bid. woken is called for each message to one alone.
func (s *scene) sleepers(key string, n int, woken func()) {
	s.Helper()
	store, _, err := table.Open(s.Context(), s.env.Pool(s), s.env.Dialect, table.Options{Lanes: 2, Timeout: 5 * time.Second, Hints: true})
	s.ok(err)
	s.Cleanup(func() { s.ok(store.Close()) })
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
		s.ok(store.Await(s.Context(), process, []string{key}, time.Minute))
	}
}

// Processes that waited a moment ago are still known to wait.
func TestAProcessThatIsWokenInVainWakesTheNext(t *testing.T) {
	onPostgres(t, func(s *scene) {
		slow := func(c *rowlock.Config) { c.PollMin, c.PollMax = 100*time.Millisecond, time.Minute }
		holder, waiter := s.client(slow), s.client(slow)
		var idle []*rowlock.Client
		for range 4 {
			idle = append(idle, s.client(slow))
		}
		l := s.take(holder, "hot")
		var waiting []<-chan got
		for _, c := range append(idle, waiter) {
			waiting = append(waiting, s.waits(s.Context(), c, "hot"))
		}
		s.hearing("hot", len(waiting))
		s.ok(l.Unlock(s.Context()))
		for range waiting {
			s.ok(s.any(waiting).l.Unlock(s.Context()))
		}
		l = s.take(holder, "hot")
		s.aged("hot") // so that it is polled every PollMax
		last := s.waits(s.Context(), waiter, "hot")
		s.atLeast(time.Second)
		freed := time.Now()
		s.ok(l.Unlock(s.Context()))
		g := s.granted(last)
		if took := g.at.Sub(freed); took > 5*time.Second {
			s.Errorf("granted %s after the release, as if nobody had been woken", took)
		}
		s.ok(g.l.Unlock(s.Context()))
	})
}

// A registration that outlived its client would be woken in the client's place, turn after turn.
func TestAClosedClientIsNotRegisteredAnyMore(t *testing.T) {
	onPostgres(t, func(s *scene) {
		holder := s.client(withPoll(hintPoll))
		for range 5 {
			l, err := holder.TryLock(s.Context(), "hot") // Lock might wait for its turn, and register the holder
			s.ok(err)
			c := s.client(withPoll(hintPoll))
			ctx, leave := context.WithCancel(s.Context())
			waiting := s.waits(ctx, c, "hot")
			s.hearing("hot", 1)
			leave()
			<-waiting
			s.ok(l.Unlock(s.Context())) // wakes it in vain, so that it takes back its registration
			s.ok(c.Close())
			var left int
			queue := s.env.Dialect.Names().Table("rowlock_queue", `"`)
			s.ok(s.env.DB.QueryRowContext(s.Context(), `SELECT count(*) FROM `+queue+` WHERE key = 'hot'`).Scan(&left))
			if left != 0 {
				s.Fatalf("%d registrations are left of a client that was closed", left)
			}
		}
	})
}
