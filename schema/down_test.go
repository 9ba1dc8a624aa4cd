package schema_test

import (
	"errors"
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
		exec(t, db, "UPDATE rowlock_meta SET value = '999' WHERE name = 'schema_version'")
		if err := schema.Down(t.Context(), db, s.dialect()); !errors.Is(err, lease.ErrSchemaVersion) {
			t.Errorf("got %v, want ErrSchemaVersion", err)
		}
		equal(t, "tables", s.listTables(t, db, ""), ourTables)
	})
}
