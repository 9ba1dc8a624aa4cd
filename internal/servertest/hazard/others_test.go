package hazard

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
)

// Rows of different partitions have the same place in their files. Batches take and free the keys
// that they name, and no other.
func TestABatchChangesNoOtherKeyOfAPartitionedTable(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		s.Partition(4, `TABLE`)
		owners := func() int64 {
			return s.Number(`SELECT count(*) FROM {rowlock} WHERE owner IS NOT NULL`)
		}
		holder, busy := s.Client(), s.Client()
		const held = 16
		for n := range held {
			s.Take(holder, fmt.Sprint("held", n))
		}
		for _, callers := range []int{4, 64} { // statements sent together, and one of all
			var all sync.WaitGroup
			for n := range callers {
				all.Go(func() {
					for range 10 {
						l, err := busy.Lock(s.Context(), fmt.Sprint("busy", n))
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
			all.Wait()
			if n := owners(); n != held {
				s.Fatalf("%d callers later %d keys have owners, of %d that are held", callers, n, held)
			}
		}
	})
}

// MySQL does not notice that a client is gone which waits for a table. What was given up is over
// all the same, while the table is still locked, and nothing piles up.
func TestAStatementThatWasGivenUpWaitsForNoTable(t *testing.T) {
	for product, waiting := range map[string]string{
		"mysql": `SELECT COUNT(*) FROM performance_schema.threads
			WHERE processlist_db = DATABASE() AND processlist_state LIKE 'Waiting for table%lock'`,
		"mariadb": `SELECT COUNT(*) FROM information_schema.processlist
			WHERE db = DATABASE() AND state LIKE 'Waiting for table%lock'`,
	} {
		servertest.On(t, product, func(s *servertest.Scene) {
			c := s.Client(func(cfg *rowlock.Config) { cfg.TTL = 3 * time.Second })
			s.OK(s.Take(c, "k").Unlock(s.Context()))
			conn, err := s.Env.DB.Conn(s.Context())
			s.OK(err)
			defer conn.Close()
			s.Exec(conn, `LOCK TABLES {rowlock} READ`)
			defer func() { s.Exec(conn, `UNLOCK TABLES`) }()
			ctx, cancel := context.WithTimeout(s.Context(), 2500*time.Millisecond)
			defer cancel()
			if l, err := c.Lock(ctx, "k"); err == nil {
				s.Errorf("%v is locked, in a table that is", l)
			}
			s.Eventually("no statement waits for the table", func() bool {
				return s.Number(waiting) == 0
			})
		})
	}
}

// A connection may have a role that the application has left in it. Locks are renewed on another.
func TestALockOutlivesAConnectionWithAnotherRole(t *testing.T) {
	servertest.On(t, "postgres", func(s *servertest.Scene) {
		role, _ := s.User()
		var next atomic.Int32 // connections that are to have the role
		cfg, err := pgx.ParseConfig(s.Env.Source)
		s.OK(err)
		cfg.RuntimeParams["application_name"] = role
		db := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			if next.Add(-1) < 0 {
				return nil
			}
			_, err := c.Exec(ctx, `SET ROLE `+role)
			return err
		}))
		defer db.Close()
		c := s.ClientOn(db, func(cfg *rowlock.Config) { cfg.TTL = 3 * time.Second })
		l := s.Take(c, "k")
		next.Store(3)
		s.Exec(s.Env.DB, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, role)
		s.Eventually("three connections had the role", func() bool { return next.Load() < 0 })
		s.Elapse(6 * time.Second) // two leases
		if err := l.Context().Err(); err != nil {
			s.Error(context.Cause(l.Context()))
		}
	})
}
