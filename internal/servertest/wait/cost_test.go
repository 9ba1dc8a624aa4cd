package wait

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// The cost of waiting does not depend on the number of waiters. What the pool is told to send is
// counted, because the server's own count of commits has those of autovacuum in it: a hundred each
// time that it comes, also in a database that no test uses.
func TestAThousandWaitersCostAServerFiveStatementsASecond(t *testing.T) {
	for _, m := range servertest.Modes {
		n := 1000
		if m.Fair {
			n = 200
		}
		t.Run(m.String(), func(t *testing.T) {
			t.Parallel()
			servertest.On(t, "postgres", func(s *servertest.Scene) { countStatements(s, m, n) })
		})
	}
}

func countStatements(s *servertest.Scene, m servertest.Mode, n int) {
	const period, most = 3 * time.Second, 5
	s.Take(s.Client(m.Set), "cost", rowlock.TTL(servertest.LongTTL), rowlock.NoRenew())
	log := &faultdb.Log{}
	db, err := faultdb.Open(s.Env.Driver, s.Env.Source, log)
	s.OK(err)
	s.Cleanup(func() { _ = db.Close() })
	c := s.ClientOn(db, m.Set)
	ctx, cancel := context.WithCancel(s.Context())
	var all sync.WaitGroup
	for range n {
		all.Go(func() { _, _ = c.Lock(ctx, "cost") })
	}
	defer all.Wait()
	defer cancel()
	s.Eventually("every waiter", func() bool { return c.Stats().Waiting == int64(n) })
	if m.Fair {
		s.Eventually("every ticket", func() bool { return tickets(s) == int64(n) })
	}
	s.Elapse(3 * time.Second) // polls are as rare as they get
	for periods := 1; ; periods++ {
		log.Reset()
		began := time.Now()
		s.Elapse(period)
		sent := log.Count(faultdb.Op.Executes)
		elapsed := time.Since(began)
		// A process or a server that was not scheduled sends fewer, and then more than it would.
		if sent >= 6 && float64(sent) <= most*elapsed.Seconds() {
			s.Logf("%d waiters: %d statements in %s", n, sent, elapsed.Round(time.Millisecond))
			return
		}
		if periods == 4 {
			s.Fatalf("%d statements in %s, want 2 to %d a second, and so in each of %d periods", sent,
				elapsed, most, periods)
		}
	}
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
