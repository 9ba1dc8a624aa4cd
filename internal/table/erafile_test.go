package table_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/schema"
)

// A SQLite file is copied back while no process has it open, over the old one or in its place.
// Nothing in it says so.
func TestTokensGrowThoughAFileWasCopiedBack(t *testing.T) {
	for name, back := range map[string]func(from, to string) error{
		"over the old": copyFile,
		"in its place": func(from, to string) error {
			next := to + ".next"
			if err := copyFile(from, next); err != nil {
				return err
			}
			return os.Rename(next, to)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.db")
			last := workOn(t, path, 3)
			backup := path + ".backup"
			if err := copyFile(path, backup); err != nil {
				t.Fatal(err)
			}
			last = max(last, workOn(t, path, 20))
			for range 2 { // the backup can be needed twice
				if err := back(backup, path); err != nil {
					t.Fatal(err)
				}
				next := workOn(t, path, 1)
				if next <= last {
					t.Errorf("token %d after %d", next, last)
				}
				last = next
			}
		})
	}
}

// workOn opens a file, grants a key n times, closes it and returns the last token.
func workOn(t *testing.T, path string, n int) (last int64) {
	t.Helper()
	db, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := schema.Migrate(t.Context(), db, sqlite.New()); err != nil {
		t.Fatal(err)
	}
	s, _, err := table.Open(t.Context(), db, sqlstore.Of(sqlite.New()), table.Options{Lanes: 1, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range n {
		l := hold(t, s, "k")
		release(t, s, l)
		last = l.Token
	}
	return last
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	return err
}
