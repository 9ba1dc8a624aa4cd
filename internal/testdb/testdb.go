// Package testdb gives tests the databases: SQLite always, and each server whose DSN is in the environment. Every test gets
// tables of its own. A server that is missing is skipped aloud, or is a failure if ROWLOCK_TEST_REQUIRE names it.
package testdb

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	mysqldriver "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/race"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Kind is one database product the tests know.
type Kind struct {
	// Name is "sqlite", "postgres", "mariadb", "mysql" or "pgbouncer".
	Name string
	// Driver is the database/sql driver's name.
	Driver string
	// New makes the dialect.
	New func(...dialect.Option) *sqlstore.Dialect
}

// Kinds are all of them.
var Kinds = []Kind{
	{"sqlite", "sqlite", func(o ...dialect.Option) *sqlstore.Dialect { return sqlstore.Of(sqlite.New(o...)) }},
	{"postgres", "pgx", func(o ...dialect.Option) *sqlstore.Dialect { return sqlstore.Of(postgres.New(o...)) }},
	{"mariadb", "mysql", func(o ...dialect.Option) *sqlstore.Dialect { return sqlstore.Of(mysql.New(o...)) }},
	{"mysql", "mysql", func(o ...dialect.Option) *sqlstore.Dialect { return sqlstore.Of(mysql.New(o...)) }},
}

// Servers are the Kinds with a server: all but SQLite.
var Servers = Kinds[1:]

// PgBouncer is the way to the postgres server through PgBouncer in transaction mode. It is none of Kinds: see Behind.
var PgBouncer = Kind{"pgbouncer", "pgx", func(o ...dialect.Option) *sqlstore.Dialect {
	return sqlstore.Of(postgres.New(append(o, postgres.Pooled())...))
}}

// DSN returns the data source name of a kind's server, skipping the test aloud if there is none. For SQLite it names a new
// file that goes with the test.
func (k Kind) DSN(tb testing.TB) string {
	tb.Helper()
	if k.Name == "sqlite" {
		file := filepath.Join(tb.TempDir(), "test.db")
		keepOpen(tb, file)
		path := (&url.URL{Path: file}).EscapedPath() // the name of a subtest may have a #, where the name of a file would end
		return "file:" + path + "?" + url.Values{"_pragma": {"journal_mode(WAL)", "busy_timeout(5000)", "synchronous(off)"}, "_txlock": {"immediate"}}.Encode()
	}
	return required(tb, k.Name)
}

// keepOpen has all clients of the test in one era, as if another client had the file open.
func keepOpen(tb testing.TB, file string) {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		tb.Fatal(err)
	}
	var o sqlstore.Opened
	if _, err := o.File(file); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(o.Close)
}

// Group returns the data source names of the members of a group under MySQL's Group Replication, skipping the test aloud if there
// is none.
func Group(tb testing.TB) []string {
	tb.Helper()
	return strings.Fields(required(tb, "group"))
}

// Installed returns what runs the programs of a language, "python", "java" or "node", or where "redis" is, skipping the test
// aloud if it is not there.
func Installed(tb testing.TB, language string) string {
	tb.Helper()
	return required(tb, language)
}

// Whole reports whether a run is to repeat what CI shows once, as `make conformance` does.
func Whole() bool { return os.Getenv("ROWLOCK_TEST_WHOLE") != "" }

// InShort returns the function, or nil in a whole run.
func InShort[F any](f F) (_ F) {
	if Whole() {
		return
	}
	return f
}

// required is what the environment says of a server.
func required(tb testing.TB, name string) string {
	tb.Helper()
	variable := "ROWLOCK_TEST_" + strings.ToUpper(name)
	dsn := os.Getenv(variable)
	if dsn == "" {
		if slices.Contains(strings.Split(os.Getenv("ROWLOCK_TEST_REQUIRE"), ","), name) {
			tb.Fatalf("%s is required by ROWLOCK_TEST_REQUIRE and %s is not set", name, variable)
		}
		tb.Skipf("SKIPPED, NOT TESTED ON %s: set %s, or run make test", strings.ToUpper(name), variable)
	}
	return dsn
}

// Fresh returns the data source name of an empty database that goes with the test: for programs whose tables have names of their
// own. On Postgres it is a schema, because making a database takes a hundred times as long.
func (k Kind) Fresh(tb testing.TB) string {
	tb.Helper()
	dsn := k.DSN(tb)
	name := fmt.Sprintf("fresh_%d_%d", os.Getpid(), serial.Add(1))
	admin := &Env{Kind: k, Dialect: k.New(), Source: dsn}
	switch k.Driver {
	case "pgx":
		admin.DB = admin.Pool(tb)
		admin.Exec(tb, "CREATE SCHEMA "+name)
		tb.Cleanup(func() { admin.Exec(tb, "DROP SCHEMA "+name+" CASCADE") })
		return dsn + "&search_path=" + name
	case "mysql":
		admin.DB = admin.Pool(tb)
		admin.Exec(tb, "CREATE DATABASE "+name)
		tb.Cleanup(func() { admin.Exec(tb, "DROP DATABASE "+name) })
		cfg, err := mysqldriver.ParseDSN(dsn)
		if err != nil {
			tb.Fatal(err)
		}
		cfg.DBName = name
		return cfg.FormatDSN()
	}
	return dsn
}

// Env is a database with rowlock's tables, made for one test.
type Env struct {
	Kind
	DB      *sql.DB
	Dialect *sqlstore.Dialect
	Source  string // the DSN

	watch *watch // of its commits
}

var serial atomic.Int64

// Each runs f as a subtest on every kind of database, all of them side by side: most of a test on
// a server is waiting. They begin when the caller returns. What they share is f's to guard.
func Each(t *testing.T, f func(t *testing.T, e *Env)) {
	t.Helper()
	EachOf(t, Kinds, f)
}

// EachOf is Each on some kinds of database, as Drawn draws them.
func EachOf(t *testing.T, kinds []Kind, f func(t *testing.T, e *Env)) {
	t.Helper()
	for _, k := range Drawn(t, kinds) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			f(t, k.Open(t))
		})
	}
}

// Drawn returns kinds without the one that is Spared, if MariaDB and MySQL are among them.
func Drawn(tb testing.TB, kinds []Kind) []Kind {
	tb.Helper()
	if !has(kinds, "mariadb") || !has(kinds, "mysql") {
		return kinds
	}
	spared := Spared(tb)
	return slices.DeleteFunc(slices.Clone(kinds), func(k Kind) bool { return k.Name == spared })
}

// Spared draws the name of MariaDB or MySQL, which have the same Go code, for a test that would run
// on both: a run under the race detector, and the explorations of make test, leave it out.
// `make conformance` runs both, and so does a single package without the detector: "".
func Spared(tb testing.TB) string {
	tb.Helper()
	if draws := race.Enabled || os.Getenv("ROWLOCK_TEST_DRAW") != ""; !draws || Whole() {
		return ""
	}
	spared := []string{"mariadb", "mysql"}[rand.IntN(2)]
	tb.Logf("left out: %s, which ROWLOCK_TEST_WHOLE=1 runs too", spared)
	return spared
}

func has(kinds []Kind, name string) bool {
	return slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name == name })
}

// InTurn is Each with one database after the other: for a test that measures the process, or that
// breaks what all of them use.
func InTurn(t *testing.T, f func(t *testing.T, e *Env)) {
	t.Helper()
	for _, k := range Drawn(t, Kinds) {
		t.Run(k.Name, func(t *testing.T) { f(t, k.Open(t)) })
	}
}

// Open returns an Env on this kind of database.
func (k Kind) Open(tb testing.TB) *Env {
	tb.Helper()
	return k.At(tb, k.DSN(tb))
}

// At is Open on a server of the test's own.
func (k Kind) At(tb testing.TB, source string) *Env {
	tb.Helper()
	e := &Env{Kind: k, Source: source, watch: &watch{tb: tb}}
	prefix := fmt.Sprintf("t%d_%d_", os.Getpid(), serial.Add(1))
	e.Dialect = k.New(dialect.Prefix(prefix))
	e.DB = e.Pool(tb)
	e.makeTables(tb)
	return e
}

// Behind returns an Env on e's tables, e being on postgres, whose pools lead through PgBouncer. Its dialect has options more.
func (e *Env) Behind(tb testing.TB, more ...dialect.Option) *Env {
	tb.Helper()
	b := &Env{Kind: PgBouncer, Source: ThroughPgBouncer(tb, e.Source), watch: e.watch}
	b.Dialect = b.New(append(more, dialect.Prefix(e.Dialect.Names().Prefix))...)
	b.DB = b.Pool(tb)
	return b
}

// Pool opens another pool on the same database, as another process would have one. That on MariaDB
// has mysql.Connector, so that the tests on MariaDB and MySQL together prove pools with and without
// it.
func (e *Env) Pool(tb testing.TB) *sql.DB {
	tb.Helper()
	if e.Name == "mariadb" {
		return e.Limited(tb)
	}
	db, err := sql.Open(e.Driver, e.Source)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// Limited is Pool with mysql.Connector, on MariaDB or MySQL.
func (e *Env) Limited(tb testing.TB) *sql.DB {
	tb.Helper()
	cfg, err := mysqldriver.ParseDSN(e.Source)
	if err != nil {
		tb.Fatal(err)
	}
	connector, err := mysql.Connector(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	db := sql.OpenDB(connector)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// Table returns the quoted name of one of the Env's tables: "rowlock", "rowlock_floor" and so on.
func (e *Env) Table(name string) string {
	quote := `"`
	if e.Driver == "mysql" {
		quote = "`"
	}
	return e.Dialect.Names().Table(name, quote)
}

// Named returns the name of one of the Env's tables as Open and its errors have it, with the schema.
func (e *Env) Named(tb testing.TB, name string) string {
	tb.Helper()
	d, err := e.Dialect.Located(context.Background(), e.DB)
	if err != nil {
		tb.Fatal(err)
	}
	return d.Fill(name)
}

// Exec runs SQL written for every kind: ? is a parameter, {rowlock} a table, {key} and {rank} those columns, {now} the clock
// expiries are compared with, {second} one second to add to it.
func (e *Env) Exec(tb testing.TB, query string, args ...any) {
	tb.Helper()
	if _, err := e.DB.ExecContext(context.Background(), e.SQL(query), args...); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
}

// SQL fills in what Exec describes.
func (e *Env) SQL(query string) string {
	now, second, key, rank := "CAST(unixepoch('subsec') * 1000 AS INTEGER)", "1000", "key", "rank"
	switch e.Driver {
	case "pgx":
		now, second = "clock_timestamp()", "interval '1 second'"
		for n := 1; strings.Contains(query, "?"); n++ {
			query = strings.Replace(query, "?", fmt.Sprintf("$%d", n), 1)
		}
	case "mysql":
		now, second, key, rank = "UTC_TIMESTAMP(6)", "INTERVAL 1 SECOND", "`key`", "`rank`"
	}
	return strings.NewReplacer("{now}", now, "{second}", second, "{key}", key, "{rank}", rank, "{rowlock}", e.Table("rowlock"),
		"{rowlock_floor}", e.Table("rowlock_floor"), "{rowlock_queue}", e.Table("rowlock_queue"), "{rowlock_meta}", e.Table("rowlock_meta"),
		"{rowlock_hold}", e.Table("rowlock_hold"), "{rowlock_once}", e.Table("rowlock_once"), "{rowlock_wait}", e.Table("rowlock_wait"), "{rowlock_member}", e.Table("rowlock_member"),
		"{rowlock_latch}", e.Table("rowlock_latch"), "{rowlock_limit}", e.Table("rowlock_limit"), "{rowlock_party}", e.Table("rowlock_party"),
		"{rowlock_forced}", e.Table("rowlock_forced"), "{rowlock_trace}", e.Table("rowlock_trace")).Replace(query)
}

// Before reports whether a PostgreSQL is older than a major version, which has what a test is of.
func (e *Env) Before(tb testing.TB, major int) bool {
	tb.Helper()
	var version int
	err := e.DB.QueryRow(`SELECT current_setting('server_version_num')::int`).Scan(&version)
	if err != nil {
		tb.Fatal(err)
	}
	return version < major*10_000
}

// Expire ends a key's lease in the store, so that no test has to sleep.
func (e *Env) Expire(tb testing.TB, key string) {
	tb.Helper()
	e.Exec(tb, `UPDATE {rowlock} SET expires_at = {now} - {second} WHERE {key} = ?`, []byte(key))
}

// ForgetEras leaves the table without the eras that its clients know, as a replica has it that was
// promoted before it had heard of them.
func (e *Env) ForgetEras(tb testing.TB) {
	tb.Helper()
	e.Exec(tb, `DELETE FROM {rowlock_meta} WHERE name LIKE 'era/%'`)
	e.Exec(tb, `INSERT INTO {rowlock_meta} (name, start, since) SELECT 'era/another server', 0, since FROM {rowlock_meta} WHERE name = 'eras'`)
}

// Later is an expiry, as Exec takes it, that no test reaches, and sooner than an hour.
var Later = "{now}" + strings.Repeat(" + {second}", 300)

// OneRow leaves one row: that of a key, whose owner has a token until Later.
func (e *Env) OneRow(tb testing.TB, key string, owner lease.Owner, token lease.Token) {
	tb.Helper()
	e.Exec(tb, `DELETE FROM {rowlock}`)
	e.Exec(tb, `INSERT INTO {rowlock} ({key}, owner, note, token, acquired_at, expires_at, placement)
		VALUES (?, ?, '', ?, {now}, `+Later+`, 0)`, []byte(key), owner[:], token)
}

// Session is a connection of its own, as a pinned connection has it before it is set up.
func (e *Env) Session(tb testing.TB) *conn.Session {
	tb.Helper()
	pinned, err := e.Pool(tb).Conn(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = pinned.Close() })
	return conn.NewSession(pinned)
}

// SetToken sets a key's token.
func (e *Env) SetToken(tb testing.TB, key string, token lease.Token) {
	tb.Helper()
	e.Exec(tb, `UPDATE {rowlock} SET token = ? WHERE {key} = ?`, token, []byte(key))
}
