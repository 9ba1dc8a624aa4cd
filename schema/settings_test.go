package schema_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// The pool's connections are the application's: their settings are as before.
func TestBusyTimeoutIsPutBack(t *testing.T) {
	db := onSQLite.open(t)
	db.SetMaxOpenConns(1)
	for _, step := range []func(context.Context, *sql.DB) error{
		func(ctx context.Context, db *sql.DB) error { return schema.Migrate(ctx, db, onSQLite.dialect()) },
		func(ctx context.Context, db *sql.DB) error { return schema.Down(ctx, db, onSQLite.dialect()) },
	} {
		exec(t, db, "PRAGMA busy_timeout = 1234")
		if err := step(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if got := one[int](t, db, "PRAGMA busy_timeout"); got != 1234 {
			t.Errorf("busy_timeout was 1234 and is %d", got)
		}
	}
}

// A snapshot taken before the wait for the lock would show the tables missing.
func TestManyMigrateAtOnceSerializable(t *testing.T) {
	on(t, onPostgres, func(t *testing.T, s server) {
		driver, dsn := s.fresh(t, s)
		together(t, 8, func() error {
			db, err := sql.Open(driver, dsn+"&default_transaction_isolation=serializable")
			if err != nil {
				return err
			}
			defer db.Close()
			return schema.Migrate(context.Background(), db, s.dialect())
		})
		complete(t, s, open(t, driver, dsn))
	})
}

func TestWithoutAutocommit(t *testing.T) {
	for _, s := range []server{onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			driver, dsn := s.fresh(t, s)
			if err := schema.Migrate(t.Context(), open(t, driver, dsn+"?autocommit=0"), s.dialect()); err != nil {
				t.Fatal(err)
			}
			complete(t, s, open(t, driver, dsn))
		})
	}
}

// refusing is a PostgreSQL that answers every query with an error, and every other statement with
// that of its driver.
func refusing(t *testing.T, code, message string, of error) *sql.DB {
	t.Helper()
	any := sqlmock.QueryMatcherFunc(func(string, string) error { return nil })
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(any))
	if err != nil {
		t.Fatal(err)
	}
	mock.MatchExpectationsInOrder(false)
	for range 20 {
		mock.ExpectExec("").WillReturnResult(sqlmock.NewResult(0, 0)).WillReturnError(of)
		mock.ExpectQuery("").WillReturnError(&pgconn.PgError{Code: code, Message: message})
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// A statement_timeout can be so short that the schema is not found. The server's error alone names
// no cure.
func TestAStatementTimeoutIsNamed(t *testing.T) {
	db := refusing(t, "57014", "canceling statement due to statement timeout", nil)
	err := schema.Migrate(t.Context(), db, onPostgres.dialect())
	if !errors.Is(err, lease.ErrBusy) || !strings.Contains(err.Error(), "SET statement_timeout = '5s'") {
		t.Errorf("got %v", err)
	}
}

// A limit may end the session before its first statement. What follows on it says nothing.
func TestWhatHasEndedTheSessionIsNamed(t *testing.T) {
	const limit = "terminating connection due to idle-session timeout"
	db := refusing(t, "57P05", limit, driver.ErrBadConn)
	err := schema.Migrate(t.Context(), db, onPostgres.dialect())
	if err == nil || !strings.Contains(err.Error(), limit) {
		t.Errorf("got %v", err)
	}
}

// Quotes mean something else under ANSI_QUOTES, and a sloppy sql_mode must not change the tables.
func TestSQLModes(t *testing.T) {
	for _, s := range []server{onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			for _, mode := range []string{"", "ANSI_QUOTES", "ANSI", "TRADITIONAL,NO_BACKSLASH_ESCAPES,IGNORE_SPACE"} {
				driver, dsn := s.fresh(t, s)
				db := open(t, driver, dsn+"?sql_mode=%27"+strings.ReplaceAll(mode, ",", "%2C")+"%27")
				if err := schema.Migrate(t.Context(), db, s.dialect()); err != nil {
					t.Fatal(err)
				}
				complete(t, s, db)
			}
		})
	}
}

// Where there is nothing to do, the user who runs the application need not be allowed to do
// anything.
func TestUpToDateNeedsNoRights(t *testing.T) {
	on(t, onPostgres, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		role := freshName()
		exec(t, db, "CREATE ROLE "+role)
		exec(t, db, "GRANT USAGE ON SCHEMA "+one[string](t, db, "SELECT current_schema()")+" TO "+role)
		exec(t, db, "GRANT SELECT ON rowlock_meta TO "+role)
		t.Cleanup(func() {
			exec(t, db, "RESET ROLE")
			exec(t, db, "DROP OWNED BY "+role)
			exec(t, db, "DROP ROLE "+role)
		})
		db.SetMaxOpenConns(1)
		exec(t, db, "SET ROLE "+role)
		migrate(t, s, db)
	})
}
