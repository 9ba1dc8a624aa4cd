package rowlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// Through PgBouncer in transaction mode, every statement of a lane may come to another session of the server. Two clients wait
// for one key, hold it for many of its TTLs, and write under its fence in transactions that share the same few sessions.
func TestClientsBehindPgBouncerExcludeEachOther(t *testing.T) {
	testdb.PgBouncer.DSN(t) // skips, before there are tables
	onScene(t, "postgres", func(direct *scene) {
		const rounds, ttl = 10, 500 * time.Millisecond
		table := direct.ledger()
		direct.exec(direct.env.DB, `INSERT INTO `+table+` VALUES (?, 0)`, 2)
		s := &scene{direct.T, direct.env.Behind(direct, postgres.Listen(direct.env.Source))}
		clients := []*rowlock.Client{s.client(withTTL(ttl), withSweep(time.Second)), s.client(withTTL(ttl))}
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range rounds {
					s.write(clients[i%2], table)
				}
			})
		}
		wg.Wait()
		if n := s.number(`SELECT n FROM `+table+` WHERE id = ?`, 2); n != 4*rounds {
			s.Errorf("%d of %d writes are there", n, 4*rounds)
		}
		kept := s.take(clients[0], "kept")
		time.Sleep(5 * ttl)
		s.wantHeld(clients[1], "kept")
		s.ok(kept.Context().Err())
		s.ok(kept.Unlock(s.Context()))
	})
}

// write reads and writes back under the lock, which loses a write if another does so at the same time.
func (s *scene) write(c *rowlock.Client, table string) {
	l := s.take(c, "ledger")
	n := s.number(`SELECT n FROM `+table+` WHERE id = ?`, 2)
	tx := s.begin(s.env.DB, nil)
	s.ok(l.Fence(s.Context(), tx))
	s.exec(tx, `UPDATE `+table+` SET n = ? WHERE id = ?`, n+1, 2)
	s.ok(tx.Commit())
	s.ok(l.Unlock(s.Context()))
}
