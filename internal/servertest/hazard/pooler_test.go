package hazard

import (
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Through PgBouncer in transaction mode, each statement of a pinned connection may run in another
// session of the server. Two clients wait for one key, hold it for several of its TTLs, and write
// under its fence in transactions that share the same few sessions.
func TestClientsBehindPgBouncerExcludeEachOther(t *testing.T) {
	testdb.PgBouncer.DSN(t) // skips, before there are tables
	servertest.On(t, "postgres", func(direct *servertest.Scene) {
		const rounds, ttl = 10, 4 * time.Second // no lock is lost on a busy machine
		table := direct.Ledger()
		direct.Exec(direct.Env.DB, `INSERT INTO `+table+` VALUES (?, 0)`, 2)
		s := &servertest.Scene{
			T: direct.T, Env: direct.Env.Behind(direct, postgres.Listen(direct.Env.Source)),
		}
		clients := []*rowlock.Client{
			s.Client(servertest.WithTTL(ttl), servertest.WithSweep(time.Second)),
			s.Client(servertest.WithTTL(ttl)),
		}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range rounds {
					write(s, clients[i%2], table)
				}
			})
		}
		wg.Wait()
		if n := s.Number(`SELECT n FROM `+table+` WHERE id = ?`, 2); n != 4*rounds {
			s.Errorf("%d of %d writes are there", n, 4*rounds)
		}
		kept := s.Take(clients[0], "kept")
		time.Sleep(2 * ttl)
		s.WantHeld(clients[1], "kept")
		s.OK(kept.Context().Err())
		s.OK(kept.Unlock(s.Context()))
	})
}

// write reads and writes back under the lock, which loses a write if another client does so at
// the same time.
func write(s *servertest.Scene, c *rowlock.Client, table string) {
	l := s.Take(c, "ledger")
	n := s.Number(`SELECT n FROM `+table+` WHERE id = ?`, 2)
	tx := s.Begin(s.Env.DB, nil)
	s.OK(l.Fence(s.Context(), tx))
	s.Exec(tx, `UPDATE `+table+` SET n = ? WHERE id = ?`, n+1, 2)
	s.OK(tx.Commit())
	s.OK(l.Unlock(s.Context()))
}
