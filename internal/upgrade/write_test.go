package upgrade_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// onEach runs f on every kind of database there is.
func onEach(t *testing.T, f func(t *testing.T, e *testdb.Env)) {
	t.Helper()
	for _, k := range testdb.Kinds {
		t.Run(k.Name, func(t *testing.T) { f(t, fresh(t, k)) })
	}
}

// filled makes tables and fills them.
func filled(t *testing.T, e *testdb.Env) {
	t.Helper()
	e.DB = e.Pool(t)
	if err := schema.Migrate(t.Context(), e.DB, e.Dialect); err != nil {
		t.Fatal(err)
	}
	newWriter(t, e).fill()
}

// Processes of released versions read these rows.
func TestRowsAreWrittenAsReleased(t *testing.T) {
	onEach(t, func(t *testing.T, e *testdb.Env) {
		filled(t, e)
		listing(t, e).Match(t, "../../testdata/wire/rows."+e.Name+".txt")
	})
}

// A version that is about to be released writes its tables for those that come after it: see
// docs/schema-changes.md.
func TestDump(t *testing.T) {
	if !*write {
		t.Skip("writes nothing without -dump")
	}
	onEach(t, func(t *testing.T, e *testdb.Env) {
		filled(t, e)
		dump(t, e, file(schema.Version, e.Name))
	})
}
