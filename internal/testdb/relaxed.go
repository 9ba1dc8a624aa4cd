package testdb

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"testing"

	"modernc.org/sqlite"
)

// watch is made once for an Env, and ends with the test that the Env was opened for.
type watch struct {
	once sync.Once
	tb   testing.TB
}

// OnlyReleasesRelax fails the test that e was opened for, at its end, if a transaction was committed
// without waiting for the disk that has done anything but free keys, or note which processes and
// chains wait. The database looks itself, by triggers, at the moment of the commit: whatever
// statement it was, on whatever connection. On MySQL and MariaDB every commit waits. An Env that
// Open did not make is not watched.
func (e *Env) OnlyReleasesRelax(tb testing.TB) {
	tb.Helper()
	if e.watch == nil {
		return
	}
	e.watch.once.Do(func() {
		switch e.Driver {
		case "sqlite":
			e.watchSQLite(tb)
		case "pgx":
			e.watchPostgres(tb)
		}
	})
}

// watched are the tables that grants and what surrounds them are written to.
var watched = []string{
	"rowlock", "rowlock_floor", "rowlock_queue", "rowlock_member", "rowlock_limit", "rowlock_forced",
	"rowlock_hold", "rowlock_once", "rowlock_latch", "rowlock_party",
}

// watchPostgres asks when the transaction commits, because a later statement could relax what an
// earlier one has granted. A sequence keeps its value when the trigger's error rolls back.
func (e *Env) watchPostgres(tb testing.TB) {
	tb.Helper()
	name := e.Dialect.Names().Prefix + "relaxed"
	e.Exec(tb, `CREATE SEQUENCE `+name)
	e.Exec(tb, `GRANT USAGE ON SEQUENCE `+name+` TO PUBLIC`)
	e.Exec(tb, fmt.Sprintf(`CREATE FUNCTION %s() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('synchronous_commit') <> 'off' THEN
    RETURN NULL;
  END IF;
  IF TG_OP = 'UPDATE' AND TG_ARGV[0] = 'rowlock' THEN
    IF NEW.owner IS NULL AND OLD.owner IS NOT NULL AND NEW.token = OLD.token THEN
      RETURN NULL;
    END IF;
  END IF;
  IF TG_ARGV[0] = 'rowlock_queue' THEN
    IF coalesce(NEW.rank, OLD.rank) IS NULL THEN
      RETURN NULL; -- a process that waits, and no ticket
    END IF;
  END IF;
  PERFORM nextval('%[1]s');
  RAISE EXCEPTION 'a relaxed %% of %%', TG_OP, TG_ARGV[0];
END $$`, name))
	for _, table := range watched {
		e.Exec(tb, fmt.Sprintf(`CREATE CONSTRAINT TRIGGER relaxed AFTER INSERT OR UPDATE OR DELETE ON %s
			DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION %s('%s')`, e.Table(table), name, table))
	}
	outer := e.watch.tb
	outer.Cleanup(func() {
		var called bool
		err := e.DB.QueryRowContext(context.Background(), `SELECT is_called FROM `+name).Scan(&called)
		if err != nil || called {
			outer.Errorf("something else than a release was committed without waiting: %t, %v", called, err)
		}
		e.Exec(outer, `DROP FUNCTION `+name+` CASCADE`)
		e.Exec(outer, `DROP SEQUENCE `+name)
	})
}

// relaxed are the tables' prefixes of which SQLite's triggers have complained.
var relaxed sync.Map

func init() {
	sqlite.MustRegisterScalarFunction("rowlock_test_relaxed", 1,
		func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			relaxed.Store(args[0], true)
			return nil, fmt.Errorf("a relaxed change of %v", args[0])
		})
}

// watchSQLite asks at each change, because SQLite changes the level in no transaction. The level of
// tests' own connections is OFF, which is none that rowlock sets.
func (e *Env) watchSQLite(tb testing.TB) {
	tb.Helper()
	const only = ` WHERE synchronous = 1`
	const but = ` AND NOT (NEW.owner IS NULL AND OLD.owner IS NOT NULL AND NEW.token = OLD.token)`
	file := fmt.Sprint(e.Dialect.Names().Prefix, "relaxed")
	for _, table := range watched {
		for _, op := range []string{"INSERT", "UPDATE", "DELETE"} {
			when := only
			if op == "UPDATE" && table == "rowlock" {
				when += but
			}
			e.Exec(tb, fmt.Sprintf(`CREATE TRIGGER IF NOT EXISTS relaxed_%s_%s AFTER %[2]s ON %s
				BEGIN SELECT rowlock_test_relaxed('%s') FROM pragma_synchronous%s; END`,
				table, op, e.Table(table), file, when))
		}
	}
	e.watch.tb.Cleanup(func() {
		if _, found := relaxed.Load(file); found {
			e.watch.tb.Error("something else than a release was committed without waiting")
		}
	})
}
