package upgrade_test

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/schema"
)

// onEach runs f on every kind of database there is.
func onEach(t *testing.T, f func(t *testing.T, e *testdb.Env)) {
	t.Helper()
	for _, k := range testdb.Drawn(t, testdb.Kinds) {
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
// docs/contributing/schema-changes.md.
func TestDump(t *testing.T) {
	if !*write {
		t.Skip("writes nothing without -dump")
	}
	onEach(t, func(t *testing.T, e *testdb.Env) {
		filled(t, e)
		dump(t, e, file(schema.Version, e.Name))
	})
}

// docs/compatibility.md promises that tables change by a migration: users have copied the released
// files among their own, and have run them.
func TestReleasedMigrationsStayAsTheyAre(t *testing.T) {
	for _, k := range testdb.Kinds {
		if k.Name == "sqlite" {
			continue // its file has no text of them
		}
		files, err := schema.FS(k.New())
		if err != nil {
			t.Fatal(err)
		}
		names, err := fs.Glob(files, "*.sql")
		if err != nil || len(names) < len(sqlstore.AllSets) {
			t.Fatalf("%s has the files %q, %v", k.Name, names, err)
		}
		for _, name := range names {
			var version int
			if _, err := fmt.Sscanf(name, "%4d", &version); err != nil {
				t.Fatal(err)
			}
			text, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			released, err := os.ReadFile(file(version, k.Name))
			if err != nil {
				t.Fatal(err)
			}
			up, _, _ := strings.Cut(strings.TrimPrefix(string(text), "-- +goose Up\n\n"), "-- +goose Down\n")
			if !strings.Contains(string(released), up) {
				t.Errorf("%s of %s is not what version %d was released with: tables that it has made differ from "+
					"now on. Leave it as it was, and write the next version's", name, k.Name, version)
			}
		}
	}
}
