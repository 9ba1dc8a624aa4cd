package fault

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// The workers that hold locks use every connection of the pool in their transactions, and more
// workers wait for one. Exactly then their locks must be renewed and released (hazard H36).
func TestLocksLiveWhileTheApplicationHasEveryOtherConnection(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		const ttl = 3 * time.Second // a shorter lease is lost by a process that gets no turn
		pool := e.Pool(t)
		pool.SetMaxOpenConns(smallest(e))
		c := servertest.Open(t, pool, e, func(cfg *rowlock.Config) { cfg.TTL = ttl })
		l := servertest.Locked(t)(c.Lock(t.Context(), "key"))

		ctx, cancel := context.WithCancel(t.Context())
		busy := busyTx(t, pool)
		var waiting sync.WaitGroup
		for range 4 {
			waiting.Go(func() {
				if conn, err := pool.Conn(ctx); err == nil {
					_ = conn.Close()
				}
			})
		}
		defer waiting.Wait()
		defer cancel()
		servertest.Eventually(t, "the pool to be exhausted",
			func() bool { return pool.Stats().WaitCount >= 4 && pool.Stats().InUse == smallest(e) })

		began := time.Now()
		servertest.Eventually(t, "two leases to pass", func() bool { return time.Since(began) > 2*ttl })
		wantLives(t, l)
		if d := servertest.LeaseLeft(t, e, "key"); d < ttl/6 {
			t.Errorf("%s are left of the lease, which is not being renewed", d)
		}
		another := servertest.Locked(t)(c.TryLock(t.Context(), "another"))
		servertest.WantErr(t, another.Unlock(t.Context()), nil)
		servertest.WantErr(t, l.Unlock(t.Context()), nil)
		if owner, _ := rowOf(t, e, "key"); owner != nil {
			t.Error("the key has an owner after Unlock")
		}
		_, _ = busy.ExecContext(t.Context(), "ROLLBACK")
		_ = busy.Close()
	})
}

// smallest is the smallest pool that Open accepts.
func smallest(e *testdb.Env) int {
	if e.Dialect.Connections() == 1 {
		return 2
	}
	return 3
}

// busyTx begins a transaction that reads, on a connection of the pool.
func busyTx(t *testing.T, pool *sql.DB) *sql.Conn {
	t.Helper()
	conn, err := pool.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"BEGIN", "SELECT 1"} {
		if _, err := conn.ExecContext(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return conn
}

func TestAPoolTooSmallIsRefusedWithTheNumbers(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, c := range []struct{ limit, connections int }{{1, 0}, {2, 0}, {3, 0}, {4, 4}, {5, 4}, {3, 2}} {
			pool := e.Pool(t)
			pool.SetMaxOpenConns(c.limit)
			connections := c.connections
			if connections == 0 {
				connections = 2
			}
			if n := e.Dialect.Connections(); n > 0 {
				connections = min(connections, n)
			}
			client, err := rowlock.Open(pool, e.Dialect,
				servertest.LongConfig(func(cfg *rowlock.Config) { cfg.Connections = c.connections }))
			if c.limit > connections {
				if err != nil {
					t.Errorf("a pool of %d for %d pinned connections was refused: %v", c.limit, connections, err)
					continue
				}
				servertest.WantErr(t, client.Close(), nil)
				continue
			}
			servertest.WantErr(t, err, rowlock.ErrPool)
			for _, number := range []string{fmt.Sprintf("(%d)", c.limit), fmt.Sprint(connections + 1)} {
				if err != nil && !strings.Contains(err.Error(), number) {
					t.Errorf("%q does not name %s", err, number)
				}
			}
			if n := pool.Stats().OpenConnections; n != 0 {
				t.Errorf("a refused Open left %d connections", n)
			}
		}
	})
}

// Connections make settings that would surprise an application: short lock waits above all. None of
// them reaches its pool, nor does a connection of theirs, and nothing is left running.
func TestTheApplicationNeverMeetsAPinnedConnection(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		want := settings(t, e.Pool(t), e, 1)[0]
		pool := e.Pool(t)
		pool.SetMaxOpenConns(12)
		pool.SetMaxIdleConns(12)
		f := &faulty{Env: e, Client: servertest.Open(t, pool, e, nil)}
		connections := pool.Stats().InUse
		if connections == 0 {
			t.Fatal("the client keeps no connection")
		}
		l := servertest.Locked(t)(f.Lock(t.Context(), "key"))
		for i, got := range settings(t, pool, e, 12-connections) {
			if got != want {
				t.Errorf("beside the client connection %d has %s, want %s", i, got, want)
			}
		}
		servertest.WantErr(t, l.Unlock(t.Context()), nil)
		servertest.WantErr(t, f.Close(), nil)
		if s := pool.Stats(); s.InUse != 0 {
			t.Errorf("%d connections are in use after Close", s.InUse)
		}
		for i, got := range settings(t, pool, e, 12) {
			if got != want {
				t.Errorf("after Close connection %d has %s, want %s", i, got, want)
			}
		}
	})
}

// settings reads, on n connections at once, the settings that pinned connections make.
func settings(t *testing.T, pool *sql.DB, e *testdb.Env, n int) (all []string) {
	t.Helper()
	query := map[string]string{
		"sqlite": `SELECT (SELECT timeout FROM pragma_busy_timeout) || ' ' || (SELECT synchronous FROM pragma_synchronous)`,
		"pgx": `SELECT concat_ws(' ', current_setting('lock_timeout'), current_setting('statement_timeout'),
			current_setting('idle_in_transaction_session_timeout'), current_setting('default_transaction_isolation'),
			current_setting('plan_cache_mode'), current_setting('jit'), current_setting('bytea_output'), current_setting('synchronous_commit'))`,
		"mysql": `SELECT CONCAT_WS(' ', @@innodb_lock_wait_timeout, @@sql_mode, @@autocommit)`,
	}[e.Driver]
	if e.Name == "mysql" {
		query = strings.Replace(query, "@@autocommit", "@@autocommit, @@transaction_isolation", 1)
	}
	for range n {
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		var s string
		if err := conn.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}
