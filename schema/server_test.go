package schema_test

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
	"testing"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/rowlockdb/rowlock/dialect"
	rowlockmysql "github.com/rowlockdb/rowlock/dialect/mysql"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// server is a kind of database under test.
type server struct {
	name  string
	quote string
	// fresh makes an empty database, gone when the test ends, and returns its driver and data
	// source name.
	fresh func(t testing.TB, s server) (driver, dsn string)
	// tables lists the tables of a schema ("" means the default one).
	tables string
	// shape prints everything the database knows of a table's definition.
	shape   string
	dialect func(opts ...dialect.Option) dialect.Dialect
}

var (
	onPostgres = server{
		name: "postgres", quote: `"`, fresh: freshPostgres, tables: postgresTables, shape: postgresShape,
		dialect: func(o ...dialect.Option) dialect.Dialect { return postgres.New(o...) },
	}
	onMySQL = server{
		name: "mysql", quote: "`", fresh: freshMySQL, tables: mysqlTables, shape: mysqlShape,
		dialect: func(o ...dialect.Option) dialect.Dialect { return rowlockmysql.New(o...) },
	}
	onMariaDB = server{
		name: "mariadb", quote: "`", fresh: freshMySQL, tables: mysqlTables, shape: mysqlShape,
		dialect: func(o ...dialect.Option) dialect.Dialect { return rowlockmysql.New(o...) },
	}
	onSQLite = server{
		name: "sqlite", quote: `"`, fresh: freshSQLite, tables: sqliteTables, shape: sqliteShape,
		dialect: func(o ...dialect.Option) dialect.Dialect { return sqlite.New(o...) },
	}
)

const (
	postgresTables = `SELECT tablename FROM pg_tables WHERE schemaname = coalesce(nullif($1, ''), current_schema()) ORDER BY tablename COLLATE "C"`
	mysqlTables    = `SELECT table_name FROM information_schema.tables WHERE table_schema = COALESCE(NULLIF(?, ''), DATABASE()) ORDER BY BINARY table_name`
	sqliteTables   = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND ?1 = '' ORDER BY name`

	postgresShape = `SELECT string_agg(line, chr(10) ORDER BY line) FROM (
		SELECT attnum || ' ' || attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull || ' '
			|| coalesce((SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum), '') AS line
		FROM pg_attribute WHERE attrelid = '%[1]s'::regclass AND attnum > 0
		UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '%[1]s'::regclass
		UNION ALL SELECT 'index ' || indexrelid::regclass FROM pg_index WHERE indrelid = '%[1]s'::regclass
		UNION ALL SELECT unnest(reloptions) FROM pg_class WHERE oid = '%[1]s'::regclass) AS lines`
	mysqlShape  = `SHOW CREATE TABLE %s`
	sqliteShape = `SELECT sql FROM sqlite_schema WHERE name = '%s'`
)

// onEach runs f against every database there is but one that is spared, all of them side by side,
// when the caller returns.
func onEach(t *testing.T, f func(t *testing.T, s server)) {
	spared := testdb.Spared(t)
	for _, s := range []server{onSQLite, onPostgres, onMySQL, onMariaDB} {
		if s.name == spared {
			continue
		}
		on(t, s, func(t *testing.T, s server) {
			t.Parallel()
			f(t, s)
		})
	}
}

func on(t *testing.T, s server, f func(t *testing.T, s server)) {
	t.Run(s.name, func(t *testing.T) {
		if s.name != "sqlite" {
			dsnOf(t, s) // skips
		}
		f(t, s)
	})
}

func dsnOf(t testing.TB, s server) string {
	t.Helper()
	variable := "ROWLOCK_TEST_" + strings.ToUpper(s.name)
	dsn := os.Getenv(variable)
	required := strings.FieldsFunc(os.Getenv("ROWLOCK_TEST_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case dsn != "":
	case slices.Contains(required, "all") || slices.Contains(required, s.name):
		t.Fatalf("%s is not set, and ROWLOCK_TEST_REQUIRE wants it", variable)
	default:
		t.Skipf("%s is not set", variable)
	}
	return dsn
}

// open returns a fresh database.
func (s server) open(t testing.TB) *sql.DB {
	t.Helper()
	driver, dsn := s.fresh(t, s)
	return open(t, driver, dsn)
}

func open(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func freshName() string { return fmt.Sprintf("rowlock_schema_%016x", rand.Uint64()) }

// freshPostgres makes a schema and a search_path that leads to it: a database takes a hundred times
// as long.
func freshPostgres(t testing.TB, s server) (driver, dsn string) {
	u, err := url.Parse(dsnOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	name := freshName()
	admin := open(t, "pgx", u.String())
	exec(t, admin, "CREATE SCHEMA "+name)
	t.Cleanup(func() { exec(t, admin, "DROP SCHEMA "+name+" CASCADE") })
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return "pgx", u.String()
}

func freshMySQL(t testing.TB, s server) (driver, dsn string) {
	cfg, err := mysql.ParseDSN(dsnOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	name := freshName()
	admin := open(t, "mysql", cfg.FormatDSN())
	exec(t, admin, "CREATE DATABASE "+name)
	t.Cleanup(func() { exec(t, admin, "DROP DATABASE "+name) })
	cfg.DBName = name
	return "mysql", cfg.FormatDSN()
}

func freshSQLite(t testing.TB, _ server) (driver, dsn string) {
	return "sqlite", filepath.Join(t.TempDir(), "locks.db")
}

func exec(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(context.Background(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// one returns the only value of a query.
func one[T any](t testing.TB, db *sql.DB, query string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRowContext(context.Background(), query, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// listTables returns the names of all tables, in order.
func (s server) listTables(t testing.TB, db *sql.DB, schema string) []string {
	t.Helper()
	rows, err := db.QueryContext(context.Background(), s.tables, schema)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names := []string{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// shapes returns the definition of every table.
func (s server) shapes(t testing.TB, db *sql.DB) string {
	t.Helper()
	var all strings.Builder
	for _, table := range s.listTables(t, db, "") {
		query := fmt.Sprintf(s.shape, table)
		if strings.HasPrefix(query, "SHOW") {
			var name, shape string
			if err := db.QueryRowContext(context.Background(), query).Scan(&name, &shape); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&all, shape)
			continue
		}
		fmt.Fprintf(&all, "%s:\n%s\n", table, one[string](t, db, query))
	}
	return all.String()
}

func equal[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
