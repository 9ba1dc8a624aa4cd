package fault

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"go.uber.org/goleak"
)

// The server kills every connection of a client, again and again: it dials new ones, and its
// locks live on.
func TestLocksSurviveTheConnectionsTheyWereGotOver(t *testing.T) {
	testdb.InTurn(t, func(t *testing.T, e *testdb.Env) {
		if e.Name == "sqlite" {
			t.Skip("there is no server to kill a connection")
		}
		const ttl = 3 * time.Second // a shorter lease is lost by a process that gets no turn
		ignore := goleak.IgnoreCurrent()
		pool, kill := killable(t, e)
		c := servertest.Open(t, pool, e, func(cfg *rowlock.Config) { cfg.TTL = ttl })
		connections := pool.Stats().InUse
		l := servertest.Locked(t)(c.TryLock(t.Context(), "key"))
		killed := 0
		for round := range 3 {
			n := kill(t)
			t.Logf("%d connections were killed", n)
			if round == 0 && n < connections {
				t.Errorf("want the %d pinned connections to be killed", connections)
			}
			// a pinned connection dials when it has something to do: later there may be few, or for a moment
			// none
			killed += n
			other := servertest.Locked(t)(c.TryLock(t.Context(), fmt.Sprint("other", round)))
			servertest.WantErr(t, other.Unlock(t.Context()), nil)
			began := time.Now()
			servertest.Eventually(t, "half a lease", func() bool { return time.Since(began) > ttl/2 })
			wantLives(t, l)
		}
		if killed <= connections {
			t.Errorf("%d connections were killed in all, want the %d pinned connections and what they dialled since",
				killed, connections)
		}
		servertest.WantErr(t, l.Unlock(t.Context()), nil)
		if owner, token := rowOf(t, e, "key"); owner != nil || token != l.Token() {
			t.Errorf("the row is %x, %d", owner, token)
		}
		servertest.WantErr(t, c.Close(), nil)
		if s := pool.Stats(); s.InUse != 0 {
			t.Errorf("%d connections are in use after Close", s.InUse)
		}
		servertest.WantErr(t, pool.Close(), nil)
		goleak.VerifyNone(t, ignore)
	})
}

// killable returns a pool whose connections the server can be told to kill: on Postgres they have
// a name of their own, and on MySQL and MariaDB a user.
func killable(t *testing.T, e *testdb.Env) (pool *sql.DB, kill func(testing.TB) int) {
	t.Helper()
	name := fmt.Sprintf("rowlock_kill_%d_%d", os.Getpid(), faultSerial.Add(1))
	var source, list, stop string
	switch e.Driver {
	case "pgx":
		u, err := url.Parse(e.Source)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		q.Set("application_name", name)
		u.RawQuery = q.Encode()
		source, list, stop = u.String(),
			`SELECT pid FROM pg_stat_activity WHERE application_name = '`+name+`'`,
			`SELECT pg_terminate_backend(%d)`
	case "mysql":
		cfg, err := mysql.ParseDSN(e.Source)
		if err != nil {
			t.Fatal(err)
		}
		e.Exec(t, `CREATE USER `+name+` IDENTIFIED BY 'secret'`)
		t.Cleanup(func() { e.Exec(t, `DROP USER `+name) })
		e.Exec(t, `GRANT ALL ON `+cfg.DBName+`.* TO `+name)
		cfg.User, cfg.Passwd = name, "secret"
		source, list, stop = cfg.FormatDSN(),
			`SELECT id FROM information_schema.processlist WHERE user = '`+name+`'`, `KILL CONNECTION %d`
		if e.Name == "mysql" { // its process list fails while any statement has bytes that are no text
			list = `SELECT processlist_id FROM performance_schema.threads WHERE processlist_user = '` +
				name + `'`
		}
	}
	pool, err := sql.Open(e.Driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	ids := func(tb testing.TB) (found []int64) {
		tb.Helper()
		rows, err := e.DB.QueryContext(context.Background(), list)
		if err != nil {
			tb.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				tb.Fatal(err)
			}
			found = append(found, id)
		}
		return found
	}
	return pool, func(tb testing.TB) int {
		tb.Helper()
		found := ids(tb)
		for _, id := range found {
			_, _ = e.DB.ExecContext(context.Background(), fmt.Sprintf(stop, id)) // it may be gone by itself
		}
		// a server kills when it gets round to it
		servertest.Eventually(tb, "the connections to be gone", func() bool {
			return !slices.ContainsFunc(ids(tb), func(id int64) bool { return slices.Contains(found, id) })
		})
		return len(found)
	}
}

// A closed client leaves nothing behind, whatever it went through: no goroutine, no connection in
// use.
func TestAClientThatSawEveryFaultLeavesNothingBehind(t *testing.T) {
	testdb.InTurn(t, func(t *testing.T, e *testdb.Env) {
		ignore := goleak.IgnoreCurrent()
		db, faults := brokenPool(t, e)
		c, err := rowlock.Open(db, e.Dialect, servertest.LongConfig(nil))
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range []faultdb.Fault{
			faultdb.FailBeforeSend(), faultdb.LoseReply(), faultdb.Delay(30 * time.Millisecond),
			faultdb.DelayAfter(30 * time.Millisecond),
		} {
			faults.Set(faultdb.Randomly(0.3, 1, fault))
			for i := range 12 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(10+20*i)*time.Millisecond)
				if l, err := c.TryLock(ctx, fmt.Sprint("key", i)); err == nil && i%2 == 0 {
					_ = l.Unlock(ctx)
				}
				cancel()
			}
		}
		faults.Set(nil)
		servertest.WantErr(t, c.Close(), nil)
		if s := db.Stats(); s.InUse != 0 {
			t.Errorf("%d connections are in use after Close", s.InUse)
		}
		servertest.WantErr(t, db.Close(), nil)
		goleak.VerifyNone(t, ignore)
		var held int
		err = e.DB.QueryRowContext(t.Context(),
			e.SQL(`SELECT count(*) FROM {rowlock} WHERE owner IS NOT NULL`)).Scan(&held)
		if err != nil || held > 0 {
			t.Errorf("%d keys have an owner after Close, %v", held, err)
		}
	})
}

func brokenPool(t *testing.T, e *testdb.Env) (*sql.DB, *faultdb.Switch) {
	t.Helper()
	faults := &faultdb.Switch{}
	db, err := faultdb.Open(e.Driver, e.Source, faults)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, faults
}
