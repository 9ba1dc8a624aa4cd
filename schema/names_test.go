package schema_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

func prefixed(prefix string) []string {
	names := []string{}
	for _, table := range ourTables {
		names = append(names, prefix+table)
	}
	return names
}

func TestPrefixes(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		for _, prefix := range []string{"billing_", "Billing_", "_", "rowlock", "rowlock_", "select", strings.Repeat("x", 40)} {
			d := s.dialect(dialect.Prefix(prefix))
			if err := schema.Migrate(t.Context(), db, d); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables", s.listTables(t, db, ""), prefixed(prefix))
			if err := schema.Uninstall(t.Context(), db, d); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables after Down", s.listTables(t, db, ""), nil)
		}
	})
}

// Prefixes that differ in case only are two sets of tables wherever the database itself tells them
// apart: SQLite does not. MySQL tells tables apart, but not the names it gives to their CHECKs, and
// refuses the second set where it comes to the first of these.
func TestPrefixesThatDifferInCase(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate := func(prefix string) error { return schema.Migrate(t.Context(), db, s.dialect(dialect.Prefix(prefix))) }
		if err := migrate("billing_"); err != nil {
			t.Fatal(err)
		}
		want := append(prefixed("Billing_"), prefixed("billing_")...)
		switch s.name {
		case "sqlite":
			want = prefixed("billing_")
		case "mysql":
			want = append([]string{"Billing_rowlock", "Billing_rowlock_floor"}, prefixed("billing_")...)
		}
		err := migrate("Billing_")
		if refused := err != nil && strings.Contains(err.Error(), "Duplicate check constraint name"); refused != (s.name == "mysql") {
			t.Error(err)
		}
		equal(t, "tables", s.listTables(t, db, ""), want)
		if err := schema.Uninstall(t.Context(), db, s.dialect(dialect.Prefix("Billing_"))); err != nil {
			t.Error(err)
		}
		want = prefixed("billing_")
		if s.name == "sqlite" {
			want = nil
		}
		equal(t, "tables after Uninstall", s.listTables(t, db, ""), want)
	})
}

func TestSchemas(t *testing.T) {
	for _, s := range []server{onPostgres, onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			db := s.open(t)
			unique := freshName()
			lower, upper := makeSchema(t, s, db, "l"+unique), makeSchema(t, s, db, "L"+unique)
			for _, schemaName := range []string{lower, upper} {
				equal(t, "tables before", s.listTables(t, db, schemaName), nil)
				d := s.dialect(dialect.Schema(schemaName), dialect.Prefix("App_"))
				if err := schema.Migrate(t.Context(), db, d); err != nil {
					t.Fatal(err)
				}
				equal(t, "tables", s.listTables(t, db, schemaName), prefixed("App_"))
			}
			equal(t, "tables in the default schema", s.listTables(t, db, ""), nil)

			if err := schema.Uninstall(t.Context(), db, s.dialect(dialect.Schema(lower), dialect.Prefix("App_"))); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables after Down", s.listTables(t, db, lower), nil)
			equal(t, "tables of the other", s.listTables(t, db, upper), prefixed("App_"))
		})
	}
}

// makeSchema makes a schema, which in MySQL is a database.
func makeSchema(t *testing.T, s server, db *sql.DB, name string) string {
	t.Helper()
	cascade := map[string]string{"postgres": " CASCADE"}[s.name]
	exec(t, db, "CREATE SCHEMA "+s.quote+name+s.quote)
	t.Cleanup(func() { exec(t, db, "DROP SCHEMA "+s.quote+name+s.quote+cascade) })
	return name
}

// Processes that run already use the table which the search_path leads to. Another one before it
// would split the locks.
func TestSearchPathIsFollowed(t *testing.T) {
	on(t, onPostgres, func(t *testing.T, s server) {
		db := s.open(t)
		db.SetMaxOpenConns(1)
		migrate(t, s, db)
		tenant := makeSchema(t, s, db, freshName())
		exec(t, db, "SELECT set_config('search_path', $1 || ', ' || current_schema(), false)", tenant)
		migrate(t, s, db)
		equal(t, "tables of the tenant", s.listTables(t, db, ""), nil)
		equal(t, "the current schema", []string{one[string](t, db, "SELECT current_schema()")}, []string{tenant})
	})
}

func TestMissingSchemaIsAnError(t *testing.T) {
	for _, s := range []server{onPostgres, onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			db := s.open(t)
			if err := schema.Migrate(t.Context(), db, s.dialect(dialect.Schema("no_such_schema"))); err == nil {
				t.Error("no error")
			}
			equal(t, "tables", s.listTables(t, db, ""), nil)
		})
	}
}

// unreachable is a database that must not be asked.
type unreachable struct{ asked bool }

func (u *unreachable) Connect(context.Context) (driver.Conn, error) {
	u.asked = true
	return nil, errors.New("unreachable")
}

func (u *unreachable) Driver() driver.Driver { return nil }

// refused says whether the names are refused everywhere, and fails the test if that takes the
// database.
func refused(t testing.TB, d dialect.Dialect) bool {
	t.Helper()
	var connector unreachable
	db := sql.OpenDB(&connector)
	defer db.Close()
	migrate := schema.Migrate(t.Context(), db, d)
	refused := errors.Is(migrate, lease.ErrConfig)
	if refused && connector.asked {
		t.Error("refused, after asking the database")
	}
	_, fs := schema.FS(d)
	_, _, sql := schema.SQL(d)
	for _, err := range []error{schema.Uninstall(t.Context(), db, d), fs, sql} {
		if refused && !errors.Is(err, lease.ErrConfig) {
			t.Errorf("Migrate refuses, and another says %v", err)
		}
	}
	return refused
}

func TestRefusedBeforeAnythingIsSent(t *testing.T) {
	bad := []dialect.Dialect{nil, sqlite.New(dialect.Schema("main")), sqlite.New(dialect.Prefix("SQLite_"))}
	for _, name := range []string{"x; DROP TABLE users", `x"`, "x`", "1x", "a.b", " ", "é", "x\n", "\x00", strings.Repeat("x", 41)} {
		for _, s := range []server{onPostgres, onMySQL, onSQLite} {
			bad = append(bad, s.dialect(dialect.Prefix(name)), s.dialect(dialect.Schema(name)))
		}
	}
	for _, d := range bad {
		if !refused(t, d) {
			t.Errorf("%v is not refused", d)
		}
	}
	if err := schema.Migrate(t.Context(), nil, sqlite.New()); !errors.Is(err, lease.ErrConfig) {
		t.Errorf("without a database: %v", err)
	}
}

// FuzzTableName: a prefix is refused before anything is sent, or exactly those tables exist
// afterwards.
func FuzzTableName(f *testing.F) {
	for _, prefix := range []string{"", "billing_", "Billing_", "sqlite_", "sQLITE_x", "sqlite", "rowlock", "x; DROP TABLE x", `a"b`, "a`b", "é", "x\x00"} {
		f.Add(prefix, "")
	}
	f.Add("x", "main")
	f.Fuzz(func(t *testing.T, prefix, schemaName string) {
		d := sqlite.New(dialect.Prefix(prefix), dialect.Schema(schemaName))
		if refused(t, d) {
			return
		}
		db := open(t, "sqlite", ":memory:")
		db.SetMaxOpenConns(1)
		if err := schema.Migrate(t.Context(), db, d); err != nil {
			t.Fatalf("%q was accepted, and then: %v", prefix, err)
		}
		equal(t, "tables", onSQLite.listTables(t, db, ""), prefixed(prefix))
	})
}
