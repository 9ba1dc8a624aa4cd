package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// refuses fails the test unless Migrate and Down return an error of this kind that says all this in
// one line.
func refuses(t *testing.T, db schema.DB, d dialect.Dialect, want error, says ...string) {
	t.Helper()
	for name, err := range map[string]error{
		"Migrate": schema.Migrate(t.Context(), db, d), "Down": schema.Down(t.Context(), db, d),
	} {
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
			continue
		}
		for _, word := range says {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %q does not say %q", name, err, word)
			}
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q has several lines", name, err)
		}
	}
}

func TestAnotherProductIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for _, other := range []server{onSQLite, onPostgres, onMySQL} {
			d := other.dialect()
			if d.Name() == s.dialect().Name() {
				continue
			}
			db := s.open(t)
			refuses(t, db, d, lease.ErrWrongDialect, d.Name()+".New()")
			equal(t, "tables", s.listTables(t, db, ""), []string{})
		}
	})
}

func TestAMissingSchemaIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		want, says := lease.ErrNoSchema, "make the schema"
		if s.name == "sqlite" {
			want, says = lease.ErrConfig, "table prefix"
		}
		err := schema.Migrate(t.Context(), s.open(t), s.dialect(dialect.Schema("nowhere")))
		if !errors.Is(err, want) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "nowhere") {
			t.Errorf("got %v, want %v that says %q", err, want, says)
		}
	})
}

func TestAReadOnlyDatabaseIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := s.fresh(t, s)
		add := map[string]string{
			"sqlite": "?_pragma=query_only(1)", "postgres": "&default_transaction_read_only=on",
			"mysql": "?transaction_read_only=1", "mariadb": "?tx_read_only=1",
		}[s.name]
		err := schema.Migrate(t.Context(), open(t, driver, dsn+add), s.dialect())
		if !errors.Is(err, lease.ErrReadOnly) {
			t.Errorf("got %v, want %v", err, lease.ErrReadOnly)
		}
	})
}

func TestAMissingRightToCreateIsRefused(t *testing.T) {
	on(t, onPostgres, func(t *testing.T, s server) {
		db := s.open(t)
		db.SetMaxOpenConns(1)
		role := freshName()
		exec(t, db, "CREATE ROLE "+role)
		exec(t, db, "GRANT USAGE ON SCHEMA "+one[string](t, db, "SELECT current_schema()")+" TO "+role)
		t.Cleanup(func() {
			exec(t, db, "RESET ROLE")
			exec(t, db, "DROP OWNED BY "+role)
			exec(t, db, "DROP ROLE "+role)
		})
		exec(t, db, "SET ROLE "+role)
		err := schema.Migrate(t.Context(), db, s.dialect())
		if !errors.Is(err, lease.ErrPrivilege) || !strings.Contains(err.Error(), "create") {
			t.Errorf("got %v, want %v", err, lease.ErrPrivilege)
		}
	})
}

func TestAMissingFolderIsNoMissingRight(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent", "app.db")
	db := open(t, "sqlite", path)
	refuses(t, db, sqlite.New(), lease.ErrConfig, "folder is missing")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestNewerTablesAreRefusedByMigrate(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		exec(t, db, "UPDATE rowlock_meta SET value = '999' WHERE name IN ('schema_version', 'compatible_from')")
		refuses(t, db, s.dialect(), lease.ErrSchemaVersion, "version 999", "upgrade rowlock")
	})
}

// traced is a pool of an application's own, with the methods and without the type.
type traced struct{ db *sql.DB }

func (p traced) Conn(ctx context.Context) (*sql.Conn, error) { return p.db.Conn(ctx) }

func TestAnyPoolCanBeMigrated(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for name, as := range map[string]func(*sql.DB) schema.DB{
			"sqlx":    func(db *sql.DB) schema.DB { return sqlx.NewDb(db, "") },
			"another": func(db *sql.DB) schema.DB { return traced{db} },
		} {
			t.Run(name, func(t *testing.T) {
				db := s.open(t)
				db.SetMaxOpenConns(1)
				for range 2 {
					if err := schema.Migrate(t.Context(), as(db), s.dialect()); err != nil {
						t.Fatal(err)
					}
				}
				complete(t, s, db)
				plain := s.open(t)
				migrate(t, s, plain)
				if got, want := s.shapes(t, db), s.shapes(t, plain); got != want {
					t.Errorf("the tables differ from those of a *sql.DB:\n%s\n%s", got, want)
				}
				if err := schema.Uninstall(t.Context(), as(db), s.dialect()); err != nil {
					t.Fatal(err)
				}
				equal(t, "tables", s.listTables(t, db, ""), []string{})
				if n := db.Stats().InUse; n != 0 {
					t.Errorf("%d connections are still in use", n)
				}
			})
		}
	})
}

// A borrowed connection that stays in its transaction would hold the lock for as long as the
// application keeps its pool.
func TestABorrowedConnectionStuckInTransactionIsDropped(t *testing.T) {
	name, dsn := onSQLite.fresh(t, onSQLite)
	other := open(t, name, dsn)
	migrate(t, onSQLite, other)
	exec(t, other, "UPDATE rowlock_meta SET value = '999' WHERE name IN ('schema_version', 'compatible_from')")
	db := sql.OpenDB(stubbornConnector{other.Driver(), dsn})
	defer db.Close()
	refuses(t, traced{db}, onSQLite.dialect(), lease.ErrSchemaVersion)
	exec(t, other, "UPDATE rowlock_meta SET value = '1' WHERE name IN ('schema_version', 'compatible_from')")
}

func TestNilIsRefusedInWords(t *testing.T) {
	var none context.Context
	db := onSQLite.open(t)
	for name, err := range map[string]error{
		"Migrate without a ctx":  schema.Migrate(none, db, sqlite.New()),
		"Down without a ctx":     schema.Down(none, db, sqlite.New()),
		"Migrate of nil":         schema.Migrate(t.Context(), nil, sqlite.New()),
		"Migrate of a nil *DB":   schema.Migrate(t.Context(), (*sql.DB)(nil), sqlite.New()),
		"Migrate of a nil *sqlx": schema.Migrate(t.Context(), (*sqlx.DB)(nil), sqlite.New()),
		"Down of nil":            schema.Down(t.Context(), nil, sqlite.New()),
	} {
		if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), "nil") {
			t.Errorf("%s: %v, want %v", name, err, lease.ErrConfig)
		}
	}
}
