package failover

import (
	"bytes"
	"database/sql"
	"log/slog"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/standby"
	"github.com/rowlockdb/rowlock/schema"
)

func TestMariaDB(t *testing.T) {
	t.Parallel()
	onInnoDB(t, "mariadb", "rpl_semi_sync_master_", "slave")
}

func TestMySQL(t *testing.T) {
	t.Parallel()
	onInnoDB(t, "mysql", "rpl_semi_sync_source_", "replica")
}

// onInnoDB runs all parts on one pair of servers. The last ends it.
func onInnoDB(t *testing.T, name, variable, replica string) {
	r := standby.StartReplicated(t, name)
	if err := schema.Migrate(t.Context(), r.DB, mysql.New()); err != nil {
		t.Fatal(err)
	}
	exec(t, r.DB, `CREATE USER plain@'127.0.0.1'`, // whom read_only stops, as it does not stop root
		`GRANT SELECT, INSERT, UPDATE, DELETE ON rowlock_test.* TO plain@'127.0.0.1'`)
	t.Run("RequireSync", func(t *testing.T) { innodbRequiresSync(t, r, variable, replica) })
	t.Run("read-only", func(t *testing.T) {
		turnsReadOnly(t, func() *sql.DB { return dialing(t, r.Address(), "plain", nil) }, mysql.New(),
			func(on bool) { readOnlyIs(t, r.DB, on) })
	})
	t.Run("promotion", func(t *testing.T) {
		if name == "mariadb" {
			proxyTurns(t, r)
		} else {
			nameChanges(t, r)
		}
	})
}

func readOnlyIs(t *testing.T, db *sql.DB, on bool) {
	t.Helper()
	value := map[bool]string{true: "ON", false: "OFF"}[on]
	exec(t, db, `SET GLOBAL read_only = `+value)
}

// warns fails the test unless Open warns of the filters of the binary log, or does not.
func warns(t *testing.T, db *sql.DB, d dialect.Dialect, of string) {
	t.Helper()
	var log bytes.Buffer
	c, err := rowlock.Open(db, d, servertest.Config(func(c *rowlock.Config) {
		c.RequireSync, c.Logger = true, slog.New(slog.NewTextHandler(&log, nil))
	}))
	if err != nil {
		t.Error(err)
		return
	}
	_ = c.Close()
	if text := log.String(); strings.Contains(text, "binlog_do_db") != (of != "") || !strings.Contains(text, of) {
		t.Errorf("Open says %q, want %q", text, of)
	}
}

// dialing is a pool to address. If there is a route, that decides where the name leads.
func dialing(tb testing.TB, address, user string, to *route) *sql.DB {
	tb.Helper()
	cfg := configOf(address, user, "rowlock_test")
	if to != nil {
		cfg.DialFunc = to.resolve
	}
	return poolOf(tb, cfg)
}

// inDatabase is a pool of the administrator in another database.
func inDatabase(tb testing.TB, address, database string) *sql.DB {
	tb.Helper()
	return poolOf(tb, configOf(address, "root", database))
}

func configOf(address, user, database string) *driver.Config {
	cfg := driver.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.DBName = "tcp", address, user, database
	cfg.Logger = &driver.NopLogger{}
	return cfg
}

func poolOf(tb testing.TB, cfg *driver.Config) *sql.DB {
	tb.Helper()
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	db := sql.OpenDB(connector)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// proxyTurns kills the primary under load, promotes the replica and turns the proxy to it.
func proxyTurns(t *testing.T, r *standby.Replicated) {
	p := newProxy(t, r.Address())
	open := func() *rowlock.Client {
		return client(t, dialing(t, p.address(), "plain", nil), mysql.New())
	}
	one, two := open(), open()
	promotes(t, one, two, func() (back time.Time) {
		r.Kill(t)
		r.Promote(t)
		back = time.Now()
		p.turn(r.ReplicaAddress())
		return back
	}, func() int { return p.count(r.ReplicaAddress()) })
}

// nameChanges is a planned switch-over: the old primary lives on and takes no writes, and its
// connections stay. Only the name leads elsewhere.
func nameChanges(t *testing.T, r *standby.Replicated) {
	dns := newRoute(r.Address())
	open := func() *rowlock.Client {
		return client(t, dialing(t, "primary.test:3306", "plain", dns), mysql.New())
	}
	one, two := open(), open()
	promotes(t, one, two, func() (back time.Time) {
		exec(t, r.DB, `SET GLOBAL super_read_only = ON`)
		r.CatchUp(t)
		r.Promote(t)
		back = time.Now()
		dns.change(r.ReplicaAddress())
		return back
	}, func() int { return dns.count(r.ReplicaAddress()) })
}

// promotes runs a failover under load, with a lock that is held and waited for.
func promotes(t *testing.T, one, two *rowlock.Client, failOver func() time.Time, accepted func() int) {
	t.Helper()
	kept, err := one.Lock(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	waiter, other := waits(t, two, "kept"), waits(t, two, "kept")
	f, stop := start(t, one, two)
	began := time.Now()
	back := failOver()
	t.Logf("the promotion took %s", back.Sub(began).Round(time.Millisecond))
	if took := f.resumed(back); took > 15*time.Second {
		t.Errorf("the next grant took %s", took)
	}
	waiter.stillWaits(t)
	if err := kept.Context().Err(); err != nil {
		t.Errorf("the lock of before has ended, though its row has survived: %v", err)
	}
	if err := kept.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	passesOn(t, kept.Token(), waiter, other)
	stop()
	fewConnections(t, accepted(), 2, time.Since(began))
}

func innodbRequiresSync(t *testing.T, r *standby.Replicated, variable, replica string) {
	d := mysql.New()
	pool := func() *sql.DB { return dialing(t, r.Address(), "plain", nil) }
	if err := opens(pool(), d); err != nil {
		t.Errorf("with a replica that acknowledges: %v", err)
	}
	for _, c := range []struct{ set, back, says string }{
		{variable + "enabled = OFF", variable + "enabled = ON", "not enabled"},
		{variable + "wait_no_" + replica + " = OFF", variable + "wait_no_" + replica + " = ON", "wait_no_"},
	} {
		exec(t, r.DB, `SET GLOBAL `+c.set)
		refuses(t, pool(), d, rowlock.ErrNotSynchronous, c.says)
		exec(t, r.DB, `SET GLOBAL `+c.back)
		servertest.Eventually(t, "the replica to acknowledge again", func() bool { return opens(pool(), d) == nil })
	}
	r.Pause(t)
	servertest.Eventually(t, "the replica to be gone", func() bool { return opens(pool(), d) != nil })
	refuses(t, pool(), d, rowlock.ErrNotSynchronous, "0 of 1 required semi-synchronous replicas")
	r.Resume(t)
	if err := opens(pool(), d); err != nil {
		t.Errorf("with the replica back: %v", err)
	}
	warns(t, pool(), d, "may not see whether binlog_do_db")
	exec(t, r.DB, `GRANT REPLICATION CLIENT ON *.* TO plain@'127.0.0.1'`)
	warns(t, pool(), d, "")
	exec(t, r.DB, `CREATE DATABASE `+standby.Unlogged)
	unlogged := inDatabase(t, r.Address(), standby.Unlogged)
	if err := schema.Migrate(t.Context(), unlogged, d); err != nil {
		t.Fatal(err)
	}
	refuses(t, unlogged, d, rowlock.ErrNotSynchronous, "binlog_ignore_db", standby.Unlogged)
	// The database of the tables matters, and not the session's.
	logged := inDatabase(t, r.Address(), "rowlock_test")
	refuses(t, logged, mysql.New(dialect.Schema(standby.Unlogged)), rowlock.ErrNotSynchronous, "binlog_ignore_db")
	if err := opens(unlogged, mysql.New(dialect.Schema("rowlock_test"))); err != nil {
		t.Errorf("tables that are logged, from a database that is not: %v", err)
	}
}
