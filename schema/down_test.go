package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/schema"
)

func TestDownLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		before := instance(t, db)
		for range 2 { // of nothing, it is no error
			if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
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

func TestDownRemovesWhatIsLeft(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		for _, lost := range ourTables {
			migrate(t, s, db)
			exec(t, db, "DROP TABLE "+lost)
			if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
				t.Fatalf("without %s: %v", lost, err)
			}
			equal(t, "tables", s.listTables(t, db, ""), nil)
		}
	})
}

func TestDownLeavesNewerTablesAlone(t *testing.T) {
	onEach(t, func(t *testing.T, s server) {
		db := s.open(t)
		migrate(t, s, db)
		exec(t, db, "UPDATE rowlock_meta SET value = '999' WHERE name IN ('schema_version', 'compatible_from')")
		if err := schema.Down(t.Context(), db, s.dialect()); !errors.Is(err, lease.ErrSchemaVersion) {
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
			if !errors.Is(err, lease.ErrSchemaVersion) || !strings.Contains(err.Error(), "schema.Down") {
				t.Errorf("of version %s: %v", version, err)
			}
		}
		if err := schema.Down(t.Context(), db, s.dialect()); err != nil {
			t.Fatal(err)
		}
		equal(t, "tables", s.listTables(t, db, ""), []string{})
		migrate(t, s, db)
		complete(t, s, db)
	})
}
