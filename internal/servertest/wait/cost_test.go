package wait

import (
	"context"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// The cost of waiting does not depend on the number of waiters. The server counts, in a database
// that no other test uses.
func TestAThousandWaitersCostAServerFiveStatementsASecond(t *testing.T) {
	for _, m := range servertest.Modes {
		n := 1000
		if m.Fair {
			n = 200
		}
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			servertest.On(t, "postgres", func(s *servertest.Scene) { countCommits(s, m, n) })
		})
	}
}

func countCommits(s *servertest.Scene, m servertest.Mode, n int) {
	const period, most = 3 * time.Second, 5
	name := database(s)
	u, err := url.Parse(s.Env.Source)
	s.OK(err)
	u.Path = "/" + name
	alone := s.Migrated(u.String())
	alone.Take(alone.Client(m.Set), "cost", rowlock.TTL(servertest.LongTTL), rowlock.NoRenew())
	// One pinned connection, so that no other pinned connection goes idle with commits that the server
	// has not counted yet.
	c := alone.Client(m.Set, func(c *rowlock.Config) { c.Connections = 1 })
	ctx, cancel := context.WithCancel(s.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() { _, _ = c.Lock(ctx, "cost") })
	}
	defer all.Wait()
	defer cancel()
	if m.Fair {
		s.Eventually("every ticket", func() bool { return tickets(aside(alone)) == int64(n) })
	}
	s.Elapse(3 * time.Second) // polls are as rare as they get
	before, began := commits(s, name)
	for periods := 1; ; periods++ {
		s.Elapse(period)
		after, ended := commits(s, name)
		// Idle sessions are counted late: a second's worth of what went before may come into the
		// period.
		elapsed := ended.Sub(began)
		made, limit := after-before, most*(elapsed+time.Second).Seconds()
		if made < 6 {
			s.Fatalf("only %d commits in %s: no client polls, or the server does not count", made, elapsed)
		}
		if float64(made) <= limit {
			s.Logf("%d waiters: %d commits in %s", n, made, elapsed.Round(time.Millisecond))
			return
		}
		if periods == 4 {
			s.Fatalf("%d commits in %s, want at most %.0f, and so in each of %d periods", made, elapsed,
				limit, periods)
		}
		before, began = after, ended // on a busy machine the tickets were still being counted
	}
}

// aside is the scene on connections that are closed at once: one that goes idle is counted only
// after ten seconds.
func aside(s *servertest.Scene) *servertest.Scene {
	e := *s.Env
	e.DB = e.Pool(s)
	e.DB.SetMaxIdleConns(-1)
	return &servertest.Scene{T: s.T, Env: &e}
}

// commits waits until the server has counted again, which it does once a second, so that what it
// counts between two calls happened between their answers.
func commits(s *servertest.Scene, database string) (n int64, at time.Time) {
	s.Helper()
	count := func() int64 {
		return s.Number(`SELECT xact_commit FROM pg_stat_database WHERE datname = ?`, database)
	}
	n = count()
	last := n
	// one may be the listener's
	s.Eventually("the server to count", func() bool { n = count(); return n >= last+2 })
	return n, time.Now()
}

// database makes a database that the test drops.
func database(s *servertest.Scene) (name string) {
	s.Helper()
	name = s.Env.Dialect.Names().Prefix + "alone"
	s.Exec(s.Env.DB, `CREATE DATABASE `+name)
	s.Cleanup(func() {
		if _, err := s.Env.DB.Exec(`DROP DATABASE ` + name + ` WITH (FORCE)`); err != nil {
			s.Error(err)
		}
	})
	return name
}
