package wait

import (
	"context"
	"fmt"
	"net/url"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// What the numbers say of the pinned connections is what the database has been sent.
func TestStatsCountWhatThePinnedConnectionsSend(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client(func(c *rowlock.Config) { c.Hints = rowlock.HintsOff })
		connections := int64(3)
		if s.Is("sqlite") {
			connections = 1
		}
		before := c.Stats()
		if before.ConnectionsOpen != connections || before.ConnectionsBusy != 0 {
			s.Errorf("%d pinned connections, of which %d are busy, want %d at rest",
				before.ConnectionsOpen, before.ConnectionsBusy, connections)
		}
		s.OK(s.Take(c, "k").Unlock(s.Context())) // makes the row
		before = c.Stats()
		const pairs = 20
		for range pairs {
			s.OK(s.Take(c, "k").Unlock(s.Context()))
		}
		after := c.Stats()
		requests, statements := after.Requests-before.Requests, after.Statements-before.Statements
		// A database that is busy for a moment is asked again.
		if requests < 2*pairs || requests > 3*pairs || after.Batches-before.Batches != requests {
			s.Errorf("%d requests in %d batches for %d pairs, one after the other",
				requests, after.Batches-before.Batches, pairs)
		}
		if statements < 2*pairs || s.Is("postgres") && statements > 3*pairs {
			s.Errorf("%d statements for %d pairs", statements, pairs)
		}
	})
}

func TestStatsShowThatCallsShareABatch(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client()
		before := c.Stats()
		var working sync.WaitGroup
		for n := range 64 {
			working.Go(func() {
				for range 10 {
					l, err := c.Lock(s.Context(), fmt.Sprint(n))
					if err != nil {
						s.Error(err)
						return
					}
					if err := l.Unlock(s.Context()); err != nil {
						s.Error(err)
					}
				}
			})
		}
		working.Wait()
		after := c.Stats()
		requests, batches := after.Requests-before.Requests, after.Batches-before.Batches
		if requests < 64*10*2 || batches*2 > requests {
			s.Errorf("%d requests in %d batches", requests, batches)
		}
		if after.Held != 0 || after.Acquired-before.Acquired != 640 || after.Waiting != 0 {
			s.Errorf("at the end: %+v", after)
		}
	})
}

func TestStatsCountRenewalsOnAServer(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		c := s.Client(servertest.WithTTL(6 * time.Second))
		// In one call, so that they are due together, however slow the machine is.
		keys := make([]string, 10)
		for n := range keys {
			keys[n] = fmt.Sprint(n)
		}
		all, err := c.TryLockAll(s.Context(), keys)
		s.OK(err)
		defer runtime.KeepAlive(all)
		s.Eventually("a renewal of each", func() bool { return c.Stats().Renewed >= 10 })
		if got := c.Stats(); got.Renewals > got.Renewed/5 || got.RenewFailed != 0 || got.Held != 10 {
			s.Errorf("10 locks, renewed together: %+v", got)
		}
	})
}

// A client listens while it waits, unless the pool can spare no connection.
func TestStatsSayWhetherAWaiterListens(t *testing.T) {
	servertest.Each(t, func(s *servertest.Scene) {
		holder, waiter := s.Client(), s.Client()
		if got := waiter.Stats(); got.Listening != 0 || got.HintsHeard != 0 {
			s.Errorf("before the wait: %+v", got)
		}
		// A poll may find the key free before the hint arrives, which then finds no waiter.
		for heard := false; !heard; {
			l := s.Take(holder, "k")
			got := waits(s, s.Context(), waiter, "k")
			s.Eventually("a wait", func() bool { return waiter.Stats().Waiting == 1 })
			if !s.Is("postgres", "sqlite", "mariadb", "mysql") {
				s.Skip("a pooler's clients listen elsewhere")
			}
			s.Eventually("the listener", func() bool { return waiter.Stats().Listening == 1 })
			before := waiter.Stats().HintsHeard
			s.OK(l.Unlock(s.Context()))
			g := granted(s, got)
			heard = waiter.Stats().HintsHeard > before
			s.OK(g.l.Unlock(s.Context()))
		}
		s.OK(waiter.Close())
		if n := waiter.Stats().Listening; n != 0 {
			s.Errorf("listens after Close")
		}
	})
}

// A reader of the numbers learns of a connection that was lost.
func TestStatsSayThatTheListenerWasLost(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		u, err := url.Parse(s.Env.Source)
		s.OK(err)
		u.Path = "/" + database(s)
		s = s.Migrated(u.String()) // where no other test listens
		c := s.Client()
		s.Take(s.Client(), "k", rowlock.TTL(servertest.LongTTL))
		ctx, cancel := context.WithCancel(s.Context())
		got := waits(s, ctx, c, "k")
		s.Eventually("the listener", func() bool { return c.Stats().Listening == 1 })
		heard := c.Stats().HintsHeard
		s.Exec(s.Env.DB, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND query ILIKE 'LISTEN%'`)
		// It connects again within a second, and then hears that any key may be free.
		s.Eventually("another listener", func() bool {
			now := c.Stats()
			return now.HintsHeard > heard && now.Listening == 1
		})
		cancel()
		<-got
	})
}
