package schema_test

import (
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

// A schema that was dumped without its rows, as that of a test database is, has the tables and says
// nothing of their version.
func TestTablesWithoutRowsAreCompleted(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		before := s.shapes(t, db)
		if s.name == "postgres" { // it knows what depends on a table, and drops none of these
			exec(t, db, "CREATE VIEW theirs AS SELECT r.key FROM rowlock AS r, rowlock_wait, rowlock_once")
		}
		for _, table := range ourTables {
			exec(t, db, "DELETE FROM "+table)
		}
		migrate(t, s, db)
		complete(t, s, db)
		if after := s.shapes(t, db); s.name != "mysql" && s.name != "mariadb" && after != before {
			t.Errorf("the tables were\n%s\nand are\n%s", before, after)
		}
	})
}

// Migrate would leave another program's table as it is, and say that rowlock's tables are made.
func TestATableOfAnotherProgramIsNamed(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		for _, theirs := range ourTables {
			db := s.open(t)
			exec(t, db, "CREATE TABLE "+theirs+" (id INT PRIMARY KEY, theirs VARCHAR(20))")
			err := schema.Migrate(t.Context(), db, s.dialect())
			if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), s.quote+theirs+s.quote) || !strings.Contains(err.Error(), "prefix") {
				t.Errorf("%s: %v", theirs, err)
			}
			equal(t, "tables", s.listTables(t, db, ""), []string{theirs})
		}
	})
}

// A set that is not made may have its name taken.
func TestATableOfAnotherProgramBesideTheSets(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		exec(t, db, "CREATE TABLE rowlock_once (id INT PRIMARY KEY)")
		if err := schema.Migrate(t.Context(), db, s.dialect(), schema.Shared); err != nil {
			t.Error(err)
		}
		err := schema.Migrate(t.Context(), db, s.dialect(), schema.Once)
		if !errors.Is(err, lease.ErrConfig) || !slices.Contains(s.listTables(t, db, ""), "rowlock_once") {
			t.Error(err)
		}
	})
}

// A tool that runs the SQL of the way down commits each statement, unless it begins a transaction,
// and can be killed behind any. Migrate completes what is left, and tokens go on.
func TestAWayDownThatWasCutShortIsCompleted(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		_, down, err := schema.SQL(s.dialect())
		if err != nil {
			t.Fatal(err)
		}
		statements := strings.SplitAfter(down, ";\n")
		for n, last := range statements {
			if !cuts.MatchString(last) {
				continue
			}
			driver, dsn := withLocks(t, s)
			db := open(t, driver, dsn)
			migrate(t, s, db)
			granted := lockAndUnlock(t, s, db, 3)
			exec(t, db, holds[s.name])
			nextSecond(t, s, db)
			for _, statement := range statements[:n+1] {
				exec(t, db, statement)
			}
			migrate(t, s, db)
			if token := lockAndUnlock(t, s, db, 1); token <= granted {
				t.Errorf("cut behind %q: token %d after %d", last, token, granted)
			}
		}
	})
}

// cuts are the statements of a way down that change something, one of each kind.
var cuts = regexp.MustCompile(`(?m)^(DELETE FROM \S+ WHERE name IN \('schema_version[^/]*'\)|DELETE .*forupdate|RENAME|DROP TABLE (IF EXISTS )?\S+_(queue|wait))`)

// holds are rows of forupdate, whose way down asks for none.
var holds = map[string]string{
	"postgres": "INSERT INTO rowlock_hold VALUES ('k', now())",
	"mysql":    "INSERT INTO rowlock_hold VALUES ('k', UTC_TIMESTAMP(6))",
	"mariadb":  "INSERT INTO rowlock_hold VALUES ('k', UTC_TIMESTAMP(6))",
	"sqlite":   "INSERT INTO rowlock_hold VALUES (x'00', 0)",
}

// nextSecond waits until a table of locks that is made anew has another time of its making than the
// present one: MySQL and MariaDB keep seconds.
func nextSecond(t *testing.T, s server, db *sql.DB) {
	t.Helper()
	for s.quote == "`" && one[int](t, db, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() "+
		"AND table_name = 'rowlock' AND create_time >= NOW() - INTERVAL 1 SECOND") > 0 {
		time.Sleep(10 * time.Millisecond)
	}
}

// Migrate makes no table that rowlock_meta says is made, because what it had would be forgotten.
// Down keeps the tokens, and Migrate makes all tables after it, as the error of Open says.
func TestALostTableIsMadeAfterDown(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		driver, dsn := withLocks(t, s)
		db := open(t, driver, dsn)
		migrate(t, s, db)
		for _, lost := range []string{"rowlock_queue", "rowlock_wait", "rowlock_member"} {
			granted := lockAndUnlock(t, s, db, 2)
			exec(t, db, "DROP TABLE "+lost)
			migrate(t, s, db)
			if _, err := rowlock.Open(db, s.dialect(), nil); !errors.Is(err, lease.ErrNoSchema) || !strings.Contains(err.Error(), "schema.Down") {
				t.Errorf("without %s: %v", lost, err)
			}
			if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
				t.Fatal(err)
			}
			migrate(t, s, db)
			if token := lockAndUnlock(t, s, db, 1); token <= granted {
				t.Errorf("without %s: token %d after %d", lost, token, granted)
			}
		}
	})
}
