package schema_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

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
