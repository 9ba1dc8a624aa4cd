package schema_test

import (
	"database/sql"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/schema"
)

// plain runs SQL as a tool does that knows nothing but lines.
func plain(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	for statement := range strings.SplitSeq(text, ";\n") {
		if strings.TrimSpace(statement) != "" {
			exec(t, db, statement)
		}
	}
}

func TestPlainSQL(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		up, down, err := schema.SQL(s.dialect())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(up+down, "goose") {
			t.Error("there is goose in it")
		}
		db, migrated := s.open(t), s.open(t)
		plain(t, db, up)
		complete(t, s, db)
		migrate(t, s, migrated)
		if got, want := s.shapes(t, db), s.shapes(t, migrated); got != want {
			t.Errorf("the tables differ from Migrate's:\n%s\n%s", got, want)
		}

		before := instance(t, db)
		migrate(t, s, db) // is content with them
		if instance(t, db) != before {
			t.Error("Migrate made them anew")
		}
		plain(t, db, down)
		equal(t, "tables", s.listTables(t, db, ""), nil)
	})
}

// Drivers that run many statements at once are given the text in one piece.
func TestPlainSQLInOnePiece(t *testing.T) {
	for _, s := range []server{onSQLite, onPostgres} {
		on(t, s, func(t *testing.T, s server) {
			up, down, err := schema.SQL(s.dialect(dialect.Prefix("one_")))
			if err != nil {
				t.Fatal(err)
			}
			db := s.open(t)
			exec(t, db, up)
			equal(t, "tables", s.listTables(t, db, ""), prefixed("one_"))
			exec(t, db, down)
			equal(t, "tables", s.listTables(t, db, ""), nil)
		})
	}
}

func TestFilesAreAFileSystem(t *testing.T) {
	for _, s := range []server{onSQLite, onPostgres, onMySQL} {
		files, err := schema.FS(s.dialect())
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(files, "00031_core.sql", "00036_trace.sql"); err != nil {
			t.Error(err)
		}
		names, _ := fs.Glob(files, "*")
		if len(names) != 6 {
			t.Errorf("%s has %d migrations", s.name, len(names))
		}
	}
}

func gooseDialect(s server) goose.Dialect {
	return map[string]goose.Dialect{
		"postgres": goose.DialectPostgres, "mysql": goose.DialectMySQL,
		"mariadb": goose.DialectMySQL, "sqlite": goose.DialectSQLite3,
	}[s.name]
}

// application returns an application's goose with a migration of its own, and after it ours if
// wanted.
func application(t *testing.T, s server, db *sql.DB, withOurs bool) *goose.Provider {
	t.Helper()
	files := fstest.MapFS{"00001_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INT);\n-- +goose Down\nDROP TABLE orders;\n")}}
	if withOurs {
		ours, err := schema.FS(s.dialect())
		if err != nil {
			t.Fatal(err)
		}
		names, _ := fs.Glob(ours, "*")
		for _, name := range names {
			sql, err := fs.ReadFile(ours, name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: sql}
		}
	}
	p, err := goose.NewProvider(gooseDialect(s), db, files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestApplicationsOwnGooseIsNotTouched(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		app := application(t, s, db, false)
		if _, err := app.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		applied := one[int](t, db, "SELECT COUNT(*) FROM goose_db_version")

		migrate(t, s, db)
		equal(t, "tables", s.listTables(t, db, ""), append([]string{"goose_db_version", "orders"}, ourTables...))
		if err := schema.Uninstall(t.Context(), db, s.dialect()); err != nil {
			t.Fatal(err)
		}
		equal(t, "tables", s.listTables(t, db, ""), []string{"goose_db_version", "orders"})
		if n := one[int](t, db, "SELECT COUNT(*) FROM goose_db_version"); n != applied {
			t.Errorf("goose_db_version had %d rows and has %d", applied, n)
		}
	})
}

func TestAmongTheApplicationsMigrations(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db, migrated := s.open(t), s.open(t)
		app := application(t, s, db, true)
		if _, err := app.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := instance(t, db)
		migrate(t, s, db)
		if instance(t, db) != before {
			t.Error("Migrate made them anew")
		}
		exec(t, db, "DROP TABLE goose_db_version")
		exec(t, db, "DROP TABLE orders")
		complete(t, s, db)
		migrate(t, s, migrated)
		if got, want := s.shapes(t, db), s.shapes(t, migrated); got != want {
			t.Errorf("the tables differ from Migrate's:\n%s\n%s", got, want)
		}
	})
}

func TestApplicationsGooseGoesDown(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		app := application(t, s, db, true)
		if _, err := app.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := app.DownTo(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		equal(t, "tables", s.listTables(t, db, ""), []string{"goose_db_version", "orders"})
	})
}
