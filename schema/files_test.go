package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	exe "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
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
		equal(t, "tables", s.listTables(t, db, ""), schema.Kept)
	})
}

// Drivers that run many statements at once are given the text in one piece.
// The sqlite3 of a distribution may be older than the SQLite that rowlock needs: Debian 12 has
// 3.40.
func TestTheProgramSQLite3MakesTablesAndRefusesToRemoveThem(t *testing.T) {
	program, err := exe.LookPath("sqlite3")
	if err != nil {
		t.Skip("NOT TESTED: ", err)
	}
	up, down, err := schema.SQL(sqlite.New())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "app.db")
	runs := func(text string) (string, error) {
		cmd := exe.Command(program, "-bail", file)
		cmd.Stdin = strings.NewReader("BEGIN;\n" + text + "COMMIT;\n")
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	if said, err := runs(up); err != nil {
		t.Fatal(err, said)
	}
	db, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	l, err := locks.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := runs(down); err == nil || !strings.Contains(said, "the tables stay") {
		t.Errorf("while a key is locked the tables go: %v %s", err, said)
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if said, err := runs(down); err != nil {
		t.Error(err, said)
	}
}

// Managed servers of MySQL may refuse tables without a primary key. After schema.Down there is no
// table of locks.
func TestPlainSQLGoesDownWherePrimaryKeysAreRequired(t *testing.T) {
	on(t, onMySQL, func(t *testing.T, s server) {
		driver, dsn := s.fresh(t, s)
		db := open(t, driver, dsn+"?sql_require_primary_key=1")
		up, down, err := schema.SQL(s.dialect())
		if err != nil {
			t.Fatal(err)
		}
		plain(t, db, up)
		plain(t, db, down)
		plain(t, db, up)
		if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
			t.Fatal(err)
		}
		plain(t, db, down)
	})
}

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
			equal(t, "tables", s.listTables(t, db, ""), []string{"one_rowlock_floor", "one_rowlock_meta"})
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

// Tokens go on above those that were granted, and the tables pass for the same.
// A database that schema.Down has been at is left as it is.
func TestApplicationsGooseGoesDownAndKeepsTokens(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		app := application(t, s, db, true)
		granted := lease.Token(0)
		for i := range 3 {
			if _, err := app.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			again := lease.Token(lockAndUnlock(t, s, db, 5))
			if again <= granted {
				t.Errorf("token %d after token %d", again, granted)
			}
			granted = again
			before := instance(t, db)
			if i == 1 {
				if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := app.DownTo(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables", s.listTables(t, db, ""), append([]string{"goose_db_version", "orders"}, schema.Kept...))
			if n := one[int](t, db, "SELECT COUNT(*) FROM rowlock_meta WHERE name LIKE '%version%' OR name LIKE 'comp%'"); n != 0 {
				t.Errorf("it has left %d versions", n)
			}
			if floor := one[lease.Token](t, db, "SELECT MIN(floor) FROM rowlock_floor"); floor < granted {
				t.Errorf("the floor %d is below the token %d", floor, granted)
			}
			if instance(t, db) != before {
				t.Error("the tables pass for others")
			}
		}
	})
}

// What the tables guard would be had, or done, a second time. Each file refuses by itself, and
// afterwards there is nothing to mend.
func TestApplicationsGooseRefusesWhatGuardsSomething(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		app := application(t, s, db, true)
		up := func() {
			t.Helper()
			if _, err := app.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		up()
		// refused goes down to what says that it guards something, and up again.
		refused := func(says string) {
			t.Helper()
			_, err := app.DownTo(t.Context(), 1)
			if err == nil || !strings.Contains(err.Error(), "the tables stay: ") || !strings.Contains(err.Error(), says) {
				t.Fatalf("got %v, want a refusal that says %q", err, says)
			}
			up()
			equal(t, "tables", s.listTables(t, db, ""), append([]string{"goose_db_version", "orders"}, ourTables...))
		}
		c, err := rowlock.Open(db, s.dialect(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		held, err := c.Lock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		refused("keys are locked")
		if err := held.Unlock(t.Context()); err != nil {
			t.Errorf("the lock that kept the tables: %v", err)
		}
		for _, bad := range []string{"placement = 3", "token = -1", "token = 9223372036853727231"} {
			exec(t, db, "UPDATE rowlock SET "+bad)
			refused("in a cluster or out of tokens")
			exec(t, db, "UPDATE rowlock SET placement = 0, token = 7")
		}
		limit := lease.Limit{Name: "limit", Slots: 3}
		if _, err := c.MakeLimit(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		slots, err := c.TrySlotsFor(t.Context(), limit, []rowlock.SlotCall{{Ctx: t.Context(), N: 2}})
		if err != nil {
			t.Fatal(err)
		}
		refused("slots of limits are held")
		read, err := c.RLock(t.Context(), "read")
		if err = errors.Join(err, slots[0].Unlock(t.Context())); err != nil {
			t.Fatal(err)
		}
		refused("readers hold keys")
		exec(t, db, "UPDATE rowlock_member SET expires_at = joined_at") // as of a process that was killed
		latches, err := latch.New(db, s.dialect(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer latches.Close()
		if _, err := latches.Open(t.Context(), "latch", 2); err != nil {
			t.Fatal(err)
		}
		refused("latches or barriers have not expired")
		exec(t, db, "DELETE FROM rowlock_latch")
		done, err := once.New(db, s.dialect(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer done.Close()
		_, err = done.Do(t.Context(), once.Request{Key: "k"}, func(context.Context, *sql.Tx) ([]byte, error) {
			return nil, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		refused("results of once have not expired")
		exec(t, db, "DELETE FROM rowlock_once")
		if _, err := app.DownTo(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		up()
		if again, err := c.Lock(t.Context(), "read"); err != nil || again.Token() <= read.Token() {
			t.Errorf("after the readers: %v, %v", again, err)
		}
	})
}

// Where DDL commits by itself, the way down may have been cut after any statement. Run again, it
// ends what it has begun, and no token is lost.
func TestTheWayDownCutAnywhereIsRunAgain(t *testing.T) {
	for _, s := range []server{onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			t.Parallel()
			_, down, err := schema.SQL(s.dialect(), schema.Core, schema.Shared)
			if err != nil {
				t.Fatal(err)
			}
			statements := strings.SplitAfter(strings.TrimSpace(down), ";\n")
			db := s.open(t)
			for n := range statements {
				if err := schema.Migrate(t.Context(), db, s.dialect(), schema.Shared); err != nil {
					t.Fatal(err)
				}
				token := lease.Token(1000 + n)
				if err := insert(s, db, []byte("key"), nil, token); err != nil {
					t.Fatal(err)
				}
				plain(t, db, strings.Join(statements[:n], ""))
				plain(t, db, down)
				equal(t, "tables", s.listTables(t, db, ""), schema.Kept)
				if floor := one[lease.Token](t, db, "SELECT MIN(floor) FROM rowlock_floor"); floor != token {
					t.Errorf("cut after %d statements, the floor is %d after token %d", n, floor, token)
				}
			}
		})
	}
}

// A program that goes on while its tables are removed loses them, and its tokens are not granted
// again.
func TestTheWayDownKeepsTokensThatAreGrantedMeanwhile(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		app := application(t, s, db, true)
		if _, err := app.Up(t.Context()); err != nil {
			t.Fatal(err)
		}
		c, err := rowlock.Open(db, s.dialect(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		last, ended := lease.Token(0), make(chan error)
		go func() {
			for {
				l, err := c.Lock(t.Context(), "key")
				if err == nil {
					last = l.Token()
					err = l.Unlock(t.Context())
				}
				if err != nil {
					ended <- err
					return
				}
			}
		}()
		err = errors.New("the key is locked")
		for err != nil && t.Context().Err() == nil {
			_, err = app.DownTo(t.Context(), 1)
		}
		if err := <-ended; !errors.Is(err, lease.ErrNoSchema) {
			t.Errorf("who goes on gets %v", err)
		}
		if floor := one[lease.Token](t, db, "SELECT MIN(floor) FROM rowlock_floor"); floor < last {
			t.Errorf("the floor %d is below the token %d", floor, last)
		}
	})
}
