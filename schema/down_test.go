package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/schema"
)

func TestUninstallLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		before := instance(t, db)
		for range 2 { // of nothing, it is no error
			if err := schema.Uninstall(t.Context(), db, s.dialect()); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables", s.listTables(t, db, ""), nil)
		}
		migrate(t, s, db)
		complete(t, s, db)
		if instance(t, db) == before {
			t.Error("new tables pass for the old ones")
		}
	})
}

func TestUninstallRemovesWhatIsLeft(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		for _, lost := range ourTables {
			migrate(t, s, db)
			exec(t, db, "DROP TABLE "+lost)
			if err := schema.Uninstall(t.Context(), db, s.dialect()); err != nil {
				t.Fatalf("without %s: %v", lost, err)
			}
			equal(t, "tables", s.listTables(t, db, ""), nil)
		}
	})
}

// A table of the user's may have a name of rowlock's, and be why rowlock was never migrated.
func TestUninstallLeavesTablesOfOthersAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		for _, theirs := range append(slices.Clone(ourTables), "rowlock_era") {
			exec(t, db, "CREATE TABLE "+theirs+" (name VARCHAR(20), mine VARCHAR(20))")
		}
		before := s.listTables(t, db, "")
		for _, remove := range []func(context.Context, schema.DB, dialect.Dialect) error{schema.Uninstall, schema.Down} {
			if err := remove(t.Context(), db, s.dialect()); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables", s.listTables(t, db, ""), before)
		}
	})
}

// A way down that finds no tables makes some that stand in for them, and may be cut short. It makes
// none on PostgreSQL.
func TestUninstallRemovesWhatTheWayDownHasMade(t *testing.T) {
	for _, s := range []server{onSQLite, onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			db := s.open(t)
			migrate(t, s, db)
			_, down, err := schema.SQL(s.dialect())
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
				t.Fatal(err)
			}
			for statement := range strings.SplitSeq(down, ";\n") {
				if strings.Contains(statement, "CREATE TABLE IF NOT EXISTS") && !strings.Contains(statement, "rowlock_down") {
					exec(t, db, statement)
				}
			}
			if err := schema.Uninstall(t.Context(), db, s.dialect()); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables", s.listTables(t, db, ""), nil)
		})
	}
}

func TestUninstallLeavesATableBesideItsOwnAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		if err := schema.Migrate(t.Context(), db, s.dialect(), schema.Core); err != nil {
			t.Fatal(err)
		}
		exec(t, db, "CREATE TABLE rowlock_once (mine VARCHAR(20))")
		if err := schema.Uninstall(t.Context(), db, s.dialect()); err != nil {
			t.Fatal(err)
		}
		equal(t, "tables", s.listTables(t, db, ""), []string{"rowlock_once"})
	})
}

// Tokens go on above those that were granted, whatever key they were for, and Down of what Down has
// left is no error.
func TestDownKeepsTokens(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		migrate(t, s, db)
		before := instance(t, db)
		granted := lockAndUnlock(t, s, db, 3)
		for range 2 {
			if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
				t.Fatal(err)
			}
			equal(t, "tables", s.listTables(t, db, ""), []string{"rowlock_floor", "rowlock_meta"})
		}
		if _, err := rowlock.Open(db, s.dialect(), nil); !errors.Is(err, lease.ErrNoSchema) {
			t.Errorf("Open after Down: %v, want %v", err, lease.ErrNoSchema)
		}
		migrate(t, s, db)
		equal(t, "tables", s.listTables(t, db, ""), ourTables)
		if instance(t, db) != before {
			t.Error("the tables pass for others")
		}
		if again := lockAndUnlock(t, s, db, 1); again <= granted {
			t.Errorf("token %d after token %d", again, granted)
		}
	})
}

// lockAndUnlock returns the last token of a key that is locked n times.
func lockAndUnlock(t *testing.T, s server, db *sql.DB, n int) (last int64) {
	t.Helper()
	c, err := rowlock.Open(db, s.dialect(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range n {
		l, err := c.Lock(t.Context(), "key")
		if err != nil {
			t.Fatal(err)
		}
		last = int64(l.Token())
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// What the tables guard would be had, or done, a second time.
func TestDownRefusesWhatGuardsSomething(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		migrate(t, s, db)
		c, err := rowlock.Open(db, s.dialect(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		refused := func(says string) {
			t.Helper()
			err := schema.Down(t.Context(), db, s.dialect())
			if !errors.Is(err, lease.ErrHeld) || !strings.Contains(err.Error(), says) {
				t.Errorf("got %v, want ErrHeld that says %q", err, says)
			}
			equal(t, "tables", s.listTables(t, db, ""), ourTables)
		}
		limit := lease.Limit{Name: "limit", Slots: 3}
		if _, err := c.MakeLimit(t.Context(), limit); err != nil {
			t.Fatal(err)
		}
		slots, err := c.TrySlotsFor(t.Context(), limit, []rowlock.SlotCall{{Ctx: t.Context(), N: 2}})
		if err != nil {
			t.Fatal(err)
		}
		refused("2 keys are locked")
		read, err := c.RLock(t.Context(), "read")
		if err == nil {
			err = slots[0].Unlock(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		refused("1 readers hold keys")
		if err := read.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
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
		refused("1 results of once")
		exec(t, db, "DELETE FROM rowlock_once")
		for _, bad := range []string{"placement = 3", "token = -1", "token = 9223372036853727231"} {
			exec(t, db, "UPDATE rowlock SET "+bad)
			refused("in a cluster, or have no tokens left")
			exec(t, db, "UPDATE rowlock SET placement = -1, token = 7") // of forupdate, and not locked
		}
		if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
			t.Error(err)
		}
	})
}

// Who removes the tables sees that there may be clients yet.
func TestDownSaysHowManyAreConnected(t *testing.T) {
	for _, s := range []server{onPostgres, onMySQL, onMariaDB} {
		on(t, s, func(t *testing.T, s server) {
			db := s.open(t)
			migrate(t, s, db)
			for range 3 {
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			}
			if s.quote == "`" {
				testdb.RunNoText(t, db) // beside it MySQL shows no list that has the statements' texts
			}
			if err := insert(s, db, []byte("key"), nil, -1); err != nil {
				t.Fatal(err)
			}
			err := schema.Down(t.Context(), db, s.dialect())
			var n int
			_, at, _ := strings.Cut(fmt.Sprint(err), "remove it; ")
			if _, failed := fmt.Sscanf(at, "%d other sessions are connected", &n); failed != nil || n < 3 {
				t.Errorf("%v, and 3 sessions are connected", err)
			}
		})
	}
}

// Limits are forgotten, and those made after them would count no slot that is held.
func TestDownAndUpExceedNoLimit(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		migrate(t, s, db)
		c, err := rowlock.Open(db, s.dialect(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		five, three := lease.Limit{Name: "limit", Slots: 5}, lease.Limit{Name: "limit", Slots: 3}
		take := func(limit lease.Limit, n int) ([]*rowlock.Locks, error) {
			if _, err := c.MakeLimit(t.Context(), limit); err != nil {
				t.Fatal(err)
			}
			return c.TrySlotsFor(t.Context(), limit, []rowlock.SlotCall{{Ctx: t.Context(), N: n}})
		}
		all, err := take(five, 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Down(t.Context(), db, s.dialect()); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("Down with slots that are held: %v", err)
		}
		migrate(t, s, db)
		for n := range three.Slots {
			if err := all[0].Lock(three.Slot(n)).Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := take(three, 2); err == nil {
			t.Error("a limit of 3 has granted 2 slots beside 2 that are held")
		}
	})
}

// Tokens cannot be kept if what has them is lost, nor where there is nothing to keep them in.
func TestDownWithoutATableThatHasTheTokensIsRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		for _, lost := range []string{"rowlock", "rowlock_floor"} {
			migrate(t, s, db)
			exec(t, db, "DROP TABLE "+lost)
			before := s.listTables(t, db, "")
			err := schema.Down(t.Context(), db, s.dialect())
			if !errors.Is(err, lease.ErrNoSchema) || !strings.Contains(err.Error(), "schema.Uninstall") {
				t.Errorf("without %s: got %v, want ErrNoSchema that names the cure", lost, err)
			}
			equal(t, "tables", s.listTables(t, db, ""), before)
			if err := schema.Uninstall(t.Context(), db, s.dialect()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestDownLeavesNewerTablesAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		exec(t, db, "UPDATE rowlock_meta SET value = '999' WHERE name IN ('schema_version', 'compatible_from')")
		if err := schema.Uninstall(t.Context(), db, s.dialect()); !errors.Is(err, lease.ErrSchemaVersion) {
			t.Errorf("got %v, want ErrSchemaVersion", err)
		}
		equal(t, "tables", s.listTables(t, db, ""), ourTables)
	})
}

// Versions 1 and 2 were never released, and their tables lack what this one reads.
func TestTablesOfAnUnreleasedVersionAreRemovedAndNotMigrated(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		exec(t, db, "CREATE TABLE rowlock_era (history VARCHAR(200))")
		for _, version := range []string{"1", "2"} {
			exec(t, db, "UPDATE rowlock_meta SET value = '"+version+"' WHERE name IN ('schema_version', 'compatible_from')")
			err := schema.Migrate(t.Context(), db, s.dialect())
			if !errors.Is(err, lease.ErrSchemaVersion) || !strings.Contains(err.Error(), "schema.Uninstall") {
				t.Errorf("of version %s: %v", version, err)
			}
		}
		if err := schema.Uninstall(t.Context(), db, s.dialect()); err != nil {
			t.Fatal(err)
		}
		equal(t, "tables", s.listTables(t, db, ""), []string{})
		migrate(t, s, db)
		complete(t, s, db)
	})
}
