package faultdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// server is a database the core tests run on, with what they have to say differently to it.
type server struct {
	name   string
	driver string
	arg    string // a placeholder
	// returning, appended to the update, makes it a query with a row. MySQL has no such thing: there an update sent as a
	// query is a query without rows.
	returning string
	dsn       func(testing.TB) string
}

var servers = []server{
	{"sqlite", "sqlite", "?", " RETURNING n", sqliteDSN},
	{"postgres", "pgx", "$1", " RETURNING n", fromEnv("postgres")},
	{"mysql", "mysql", "?", "", fromEnv("mysql")},
	{"mariadb", "mysql", "?", "", fromEnv("mariadb")},
}

func sqliteDSN(t testing.TB) string {
	return "file:" + filepath.Join(t.TempDir(), "test.db") + "?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)"
}

func fromEnv(name string) func(testing.TB) string {
	return func(t testing.TB) string {
		t.Helper()
		env := "ROWLOCK_TEST_" + strings.ToUpper(name)
		if dsn := os.Getenv(env); dsn != "" {
			return dsn
		}
		if slices.Contains(strings.FieldsFunc(os.Getenv("ROWLOCK_TEST_REQUIRE"), isSeparator), name) {
			t.Fatalf("%s is required and %s is not set", name, env)
		}
		t.Skipf("SKIPPED, NOT PASSED: no %s server; set %s, or run this under scripts/with-servers", name, env)
		return ""
	}
}

func isSeparator(r rune) bool { return r == ',' || r == ' ' }

// onEach runs a test on every server there is.
func onEach(t *testing.T, test func(t *testing.T, s server)) {
	t.Helper()
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			s.dsn(t) // skips the server as a whole, not each of its tests
			test(t, s)
		})
	}
}

// bed is a table with one counter in it, seen through two databases: one that can be broken and one that cannot.
type bed struct {
	testing.TB
	server
	dsn   string
	table string
	plain *sql.DB
}

func newBed(t testing.TB, s server) *bed {
	t.Helper()
	b := &bed{TB: t, server: s, dsn: s.dsn(t), table: fmt.Sprintf("faultdb_%x", rand.Uint64())}
	plain, err := sql.Open(s.driver, b.dsn)
	if err != nil {
		t.Fatal(err)
	}
	b.plain = plain
	t.Cleanup(func() {
		b.do("DROP TABLE " + b.table)
		b.close(plain)
	})
	b.do("CREATE TABLE " + b.table + " (id INT PRIMARY KEY, n INT NOT NULL)")
	b.do("INSERT INTO " + b.table + " VALUES (1, 0)")
	return b
}

// open returns a database with faults. It is closed before the table is dropped.
func (b *bed) open(inj faultdb.Injector) *sql.DB {
	b.Helper()
	db, err := faultdb.Open(b.driver, b.dsn, inj)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { b.close(db) })
	return db
}

// conn returns one connection of a database with faults.
func (b *bed) conn(inj faultdb.Injector) *sql.Conn {
	b.Helper()
	conn, err := b.open(inj).Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() }) // its error is ErrConnDone after a cut
	return conn
}

func (b *bed) close(db *sql.DB) {
	if err := db.Close(); err != nil {
		b.Error(err)
	}
}

func (b *bed) do(query string) {
	b.Helper()
	if _, err := b.plain.ExecContext(context.Background(), query); err != nil {
		b.Fatal(err)
	}
}

// bump adds one to the counter; bumpBy adds its argument; ask adds one as a query.
func (b *bed) bump() string   { return "UPDATE " + b.table + " SET n = n + 1" }
func (b *bed) bumpBy() string { return "UPDATE " + b.table + " SET n = n + " + b.arg }
func (b *bed) ask() string    { return b.bump() + b.returning }

// wantCount checks what the server has in the table, over a connection of its own.
func (b *bed) wantCount(want int) {
	b.Helper()
	var got int
	if err := b.plain.QueryRowContext(context.Background(), "SELECT n FROM "+b.table).Scan(&got); err != nil {
		b.Fatal(err)
	}
	if got != want {
		b.Errorf("the server executed it %d times, want %d", got, want)
	}
}

// execution is a way of having a statement executed once on one connection.
type execution struct {
	name string
	run  func(ctx context.Context, b *bed, c *sql.Conn) error
}

var executions = []execution{
	{"exec", func(ctx context.Context, b *bed, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, b.bump())
		return err
	}},
	{"exec with an argument", func(ctx context.Context, b *bed, c *sql.Conn) error {
		_, err := c.ExecContext(ctx, b.bumpBy(), 1)
		return err
	}},
	{"query", func(ctx context.Context, b *bed, c *sql.Conn) error {
		return readOut(c.QueryContext(ctx, b.ask()))
	}},
	{"prepared exec", func(ctx context.Context, b *bed, c *sql.Conn) error {
		return prepared(ctx, c, b.bumpBy(), func(s *sql.Stmt) error {
			_, err := s.ExecContext(ctx, 1)
			return err
		})
	}},
	{"prepared query", func(ctx context.Context, b *bed, c *sql.Conn) error {
		return prepared(ctx, c, b.ask(), func(s *sql.Stmt) error { return readOut(s.QueryContext(ctx)) })
	}},
}

func prepared(ctx context.Context, c *sql.Conn, query string, use func(*sql.Stmt) error) error {
	s, err := c.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer s.Close()
	return use(s)
}

func readOut(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}
