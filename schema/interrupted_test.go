package schema_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// A table in the way stops a migration after its first tables are made.
func TestFailureLeavesNothing(t *testing.T) {
	for _, s := range []server{onSQLite, onPostgres} {
		on(t, s, func(t *testing.T, s server) {
			db := s.open(t)
			db.SetMaxOpenConns(1)
			exec(t, db, "CREATE TABLE rowlock_floor (other INTEGER)")
			if err := schema.Migrate(t.Context(), db, s.dialect()); err == nil {
				t.Fatal("no error")
			}
			equal(t, "tables", s.listTables(t, db, ""), []string{"rowlock_floor"})

			// The connection is in no transaction, and no other is locked out.
			exec(t, db, "DROP TABLE rowlock_floor")
			migrate(t, s, db)
			complete(t, s, db)
		})
	}
}

// MySQL keeps what was done when it stopped. Wherever that was, the next run completes it.
func TestInterruptedMySQLIsCompleted(t *testing.T) {
	for _, s := range []server{onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			t.Parallel()
			up, _, err := schema.SQL(s.dialect())
			if err != nil {
				t.Fatal(err)
			}
			statements := strings.SplitAfter(up, ";\n")
			first := slices.IndexFunc(statements, func(s string) bool {
				return strings.Contains(s, "('schema_version', '1')")
			})
			for n := range statements {
				db := s.open(t)
				plain(t, db, strings.Join(statements[:n], ""))
				if n > 3 && n <= first {
					exec(t, db, "DELETE FROM rowlock_floor WHERE bucket % 2 = 0")
				}
				migrate(t, s, db)
				if n < len(statements)-1 {
					complete(t, s, db)
				}
			}
		})
	}
}

// cutAnywhere calls f with a connection that is lost at one of the first operations, before it is
// sent and before its reply, then step operations later, and so on until f is through before the
// cut. Each run begins at another; a whole one cuts each operation in both ways.
func cutAnywhere(t *testing.T, driver, dsn string, step int, f func(broken *sql.DB, n int)) {
	t.Helper()
	if testdb.Whole() {
		step = 1
	}
	first := rand.IntN(step)
	t.Logf("cut at each %d of the operations, from %d; ROWLOCK_TEST_WHOLE=1 cuts at all", step, 1+first)
	for i, cut := range []faultdb.Fault{faultdb.FailBeforeSend(), faultdb.LoseReply()} {
		for n, reached := 1+(first+i)%step, true; reached; n += step {
			var log faultdb.Log
			broken, err := faultdb.Open(driver, dsn, faultdb.Any(&log, faultdb.Nth(int64(n), cut)))
			if err != nil {
				t.Fatal(err)
			}
			f(broken, n)
			broken.Close()
			reached = len(log.Ops()) >= n
		}
	}
}

// A connection that breaks anywhere leaves all or nothing, and what it leaves is no obstacle to the
// next run. MySQL leaves the tables it has made so far, but never a version without all of them.
func TestCutAnywhere(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := s.fresh(t, s)
		whole, failures := open(t, driver, dsn), 0
		cutAnywhere(t, driver, dsn, 7, func(broken *sql.DB, n int) {
			if schema.Migrate(t.Context(), broken, s.dialect()) != nil {
				failures++
			}
			if left := s.listTables(t, whole, ""); s.quote == `"` && len(left) != 0 && len(left) != len(ourTables) {
				t.Errorf("cut at operation %d: left %v", n, left)
			}
			migrate(t, s, whole)
			complete(t, s, whole)
			if err := schema.Uninstall(t.Context(), whole, s.dialect()); err != nil {
				t.Fatal(err)
			}
		})
		if failures < 7 {
			t.Errorf("only %d cuts did any harm", failures)
		}
	})
}

// Down that is cut off anywhere forgets no token, and can be run again.
func TestDownCutAnywhere(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := s.fresh(t, s)
		whole := open(t, driver, dsn)
		migrate(t, s, whole)
		cutAnywhere(t, driver, dsn, 5, func(broken *sql.DB, n int) {
			if err := insert(s, whole, []byte("key"), nil, lease.Token(n)); err != nil {
				t.Fatal(err)
			}
			_ = schema.Down(t.Context(), broken, s.dialect())
			if err := schema.Down(t.Context(), whole, s.dialect()); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables", s.listTables(t, whole, ""), []string{"rowlock_floor", "rowlock_meta"})
			if floor := one[int](t, whole, "SELECT MAX(floor) FROM rowlock_floor"); floor < n {
				t.Errorf("cut at operation %d: the floor is %d, and token %d was granted", n, floor, n)
			}
			migrate(t, s, whole)
		})
	})
}

// Uninstall that is cut off can be run again, and Migrate after it makes what is missing. Most of
// it is what Down does.
func TestUninstallCutAnywhere(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := s.fresh(t, s)
		whole := open(t, driver, dsn)
		migrate(t, s, whole)
		cutAnywhere(t, driver, dsn, 7, func(broken *sql.DB, n int) {
			_ = schema.Uninstall(t.Context(), broken, s.dialect())
			if n%2 == 0 {
				if err := schema.Uninstall(t.Context(), whole, s.dialect()); err != nil {
					t.Fatal(err)
				}
				equal(t, "tables", s.listTables(t, whole, ""), nil)
			}
			migrate(t, s, whole)
			complete(t, s, whole)
		})
	})
}

// stubborn connections do not roll back.
type stubborn struct{ driver.Conn }

func (c stubborn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "ROLLBACK") {
		return nil, errors.New("stubborn")
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c stubborn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type stubbornConnector struct {
	inner driver.Driver
	dsn   string
}

func (c stubbornConnector) Driver() driver.Driver { return c.inner }

func (c stubbornConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.inner.Open(c.dsn)
	return stubborn{conn}, err
}

// A connection that stays in its transaction would hold the lock for as long as the application
// keeps its pool.
func TestConnectionStuckInTransactionIsDropped(t *testing.T) {
	name, dsn := onSQLite.fresh(t, onSQLite)
	other := open(t, name, dsn)
	exec(t, other, "CREATE TABLE rowlock_floor (other INTEGER)")
	db := sql.OpenDB(stubbornConnector{other.Driver(), dsn})
	defer db.Close()
	if err := schema.Migrate(t.Context(), db, onSQLite.dialect()); err == nil {
		t.Fatal("no error")
	}
	exec(t, other, "DROP TABLE rowlock_floor")
	migrate(t, onSQLite, other)
}

// held is a database on which another process is migrating until release is called.
func held(t *testing.T, s server) (db *sql.DB, release func()) {
	t.Helper()
	name := "SHA2(CONCAT('`', DATABASE(), '`.`rowlock_meta`'), 224)"
	begin, end := "DO GET_LOCK("+name+", 60)", "DO RELEASE_LOCK("+name+")"
	switch s.name {
	case "postgres":
		begin, end = "BEGIN; SELECT pg_advisory_xact_lock(x'726f776c6f636b'::bigint)", "ROLLBACK"
	case "sqlite":
		begin, end = "BEGIN IMMEDIATE", "ROLLBACK"
	}
	driver, dsn := s.fresh(t, s)
	other := open(t, driver, dsn)
	other.SetMaxOpenConns(1)
	exec(t, other, begin)
	return open(t, driver, dsn), func() { exec(t, other, end) }
}

// A cancelled Migrate gives up waiting for another, and neither leaves a lock behind.
func TestCancelledWhileWaiting(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db, release := held(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := schema.Migrate(ctx, db, s.dialect()); err == nil || ctx.Err() == nil {
			t.Fatalf("got %v while another was migrating", err)
		}
		equal(t, "tables", s.listTables(t, db, ""), nil)

		release()
		migrate(t, s, db)
		complete(t, s, db)
	})
}

func TestCancelledBefore(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := schema.Migrate(ctx, db, s.dialect()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		equal(t, "tables", s.listTables(t, db, ""), nil)
	})
}
