package shedlock_test

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/shedlock"
)

func TestMain(m *testing.M) {
	adaptertest.Main(m, work, &classes)
}

// ttl is that of the processes: one that was killed does not unlock, and a busy machine is slow.
const ttl = 10 * time.Second

// work locks in ShedLock's table as Holder.java does.
func work(ctx context.Context, w *adaptertest.Worker) error {
	store, err := shedlock.Open(ctx, w.DB, w.Dialect, shedlock.Table(w.Role))
	if err != nil {
		return err
	}
	locks, err := rowlock.New(store, &rowlock.Config{TTL: ttl, PollMax: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	defer locks.Close()
	for ctx.Err() == nil {
		l, err := locks.Lock(ctx, "job")
		if err != nil {
			return err
		}
		_ = w.Unfenced(ctx, l.Context().Err) // what matters is told
		if err := l.Unlock(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// columns are ShedLock's, as its documentation has them.
func columns(e *testdb.Env) string {
	stamp := "TIMESTAMP NOT NULL"
	if e.Driver == "mysql" {
		stamp = "TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)"
	}
	return "name VARCHAR(64) NOT NULL, lock_until " + stamp + ", locked_at " + stamp +
		", locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name)"
}

// table makes a table of the test's own.
func table(t *testing.T, e *testdb.Env, columns string) string {
	t.Helper()
	name := e.Dialect.Names().Prefix + "shedlock"
	e.Exec(t, "CREATE TABLE "+name+" ("+columns+")")
	t.Cleanup(func() { e.Exec(t, "DROP TABLE "+name) })
	return name
}

func open(t *testing.T, e *testdb.Env, table string) *shedlock.Store {
	t.Helper()
	return openOn(t, e.DB, e, table)
}

func openOn(t *testing.T, db *sql.DB, e *testdb.Env, table string) *shedlock.Store {
	t.Helper()
	s, err := shedlock.Open(t.Context(), db, e.Dialect, shedlock.Table(table))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func client(t *testing.T, s *shedlock.Store) *rowlock.Client {
	t.Helper()
	c, err := rowlock.New(s, &rowlock.Config{TTL: ttl, PollMax: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// expire ends the lock on a name, as if its time had passed.
func expire(t *testing.T, e *testdb.Env, table string) {
	t.Helper()
	utc := "{now}"
	if e.Driver == "pgx" {
		utc = "{now} AT TIME ZONE 'UTC'"
	}
	e.Exec(t, "UPDATE "+table+" SET lock_until = "+utc+" - {second}")
}

// java starts ShedLock with a clock: "db", or how many seconds its own is ahead.
func java(table, clock string) adaptertest.Party {
	return func(t *testing.T, e *testdb.Env, counter string) *exec.Cmd {
		jars := testdb.Installed(t, "java")
		return exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dslf4j.internal.verbosity=ERROR", "-cp",
			compiled(t, jars)+string(os.PathListSeparator)+jars, "Holder", javaURL(t, e), table, "job",
			strconv.FormatInt(ttl.Milliseconds(), 10), counter, clock)
	}
}

var (
	compile sync.Once
	classes string
)

// compiled is the folder of Holder's classes.
func compiled(t *testing.T, jars string) string {
	t.Helper()
	compile.Do(func() {
		dir, err := os.MkdirTemp("", "rowlock-shedlock-")
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("javac", "-cp", jars, "-d", dir, filepath.Join("testdata", "Holder.java")).CombinedOutput()
		if err != nil {
			t.Fatalf("javac: %v\n%s", err, out)
		}
		classes = dir
	})
	if classes == "" {
		t.Fatal("Holder.java could not be compiled: see the test that came first")
	}
	return classes
}

func javaURL(t *testing.T, e *testdb.Env) string {
	t.Helper()
	if e.Driver == "mysql" {
		cfg, err := mysqldriver.ParseDSN(e.Source)
		if err != nil {
			t.Fatal(err)
		}
		return "jdbc:mariadb://" + cfg.Addr + "/" + cfg.DBName + "?" + url.Values{
			"user": {cfg.User}, "password": {cfg.Passwd}, "allowPublicKeyRetrieval": {"true"},
		}.Encode()
	}
	u, err := url.Parse(e.Source)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	return "jdbc:postgresql://" + u.Host + "/" + strings.TrimPrefix(u.Path, "/") + "?" + url.Values{
		"user": {u.User.Username()}, "password": {password},
	}.Encode()
}
