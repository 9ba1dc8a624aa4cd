package rowlock_test

import (
	"context"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
)

// What waiting costs a server does not depend on how many wait. The server counts, in a database where nobody else is.
func TestAThousandWaitersCostAServerFiveStatementsASecond(t *testing.T) {
	for _, m := range modes {
		n := 1000
		if m.fair {
			n = 200
		}
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			onScene(t, "postgres", func(s *scene) { s.countCommits(m, n) })
		})
	}
}

func (s *scene) countCommits(m mode, n int) {
	const period, most = 3 * time.Second, 5
	name := s.database()
	u, err := url.Parse(s.env.Source)
	s.ok(err)
	u.Path = "/" + name
	alone := s.migrated(u.String())
	alone.take(alone.client(m.set), "cost", rowlock.TTL(faultTTL), rowlock.NoRenew())
	// One lane, so that none that was busy before goes idle with commits that the server has not counted yet.
	c := alone.client(m.set, func(c *rowlock.Config) { c.Lanes = 1 })
	ctx, cancel := context.WithCancel(s.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() { _, _ = c.Lock(ctx, "cost") })
	}
	defer all.Wait()
	defer cancel()
	if m.fair {
		s.eventually("every ticket", func() bool { return alone.aside().tickets() == int64(n) })
	}
	s.atLeast(3 * time.Second) // the looks are as rare as they get
	before, began := s.commits(name)
	for periods := 1; ; periods++ {
		s.atLeast(period)
		after, ended := s.commits(name)
		// Idle sessions are counted late: a second's worth of what went before may come into the period.
		elapsed := ended.Sub(began)
		made, limit := after-before, most*(elapsed+time.Second).Seconds()
		if made < 6 {
			s.Fatalf("only %d commits in %s: nothing looks, or nothing counts", made, elapsed)
		}
		if float64(made) <= limit {
			s.Logf("%d waiters: %d commits in %s", n, made, elapsed.Round(time.Millisecond))
			return
		}
		if periods == 4 {
			s.Fatalf("%d commits in %s, want at most %.0f, and so in each of %d periods", made, elapsed, limit, periods)
		}
		before, began = after, ended // on a busy machine the tickets were still being counted
	}
}

// aside is the scene on connections that are closed at once: one that goes idle is counted only after ten seconds.
func (s *scene) aside() *scene {
	e := *s.env
	e.DB = e.Pool(s)
	e.DB.SetMaxIdleConns(-1)
	return &scene{s.T, &e}
}

// commits waits until the server has counted again, which it does once a second, so that what it counts between two calls has
// happened between their answers.
func (s *scene) commits(database string) (n int64, at time.Time) {
	s.Helper()
	count := func() int64 {
		return s.number(`SELECT xact_commit FROM pg_stat_database WHERE datname = ?`, database)
	}
	n = count()
	last := n
	s.eventually("the server to count", func() bool { n = count(); return n >= last+2 }) // one may be the listener's
	return n, time.Now()
}

// database makes one that goes with the test.
func (s *scene) database() (name string) {
	s.Helper()
	name = s.env.Dialect.Names().Prefix + "alone"
	s.exec(s.env.DB, `CREATE DATABASE `+name)
	s.Cleanup(func() {
		if _, err := s.env.DB.Exec(`DROP DATABASE ` + name + ` WITH (FORCE)`); err != nil {
			s.Error(err)
		}
	})
	return name
}
