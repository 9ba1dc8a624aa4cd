// Package refused tests that rowlock refuses a driver for SQLite.
package refused

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/latch"
	"github.com/rowlockdb/rowlock/once"
	"github.com/rowlockdb/rowlock/schema"
)

// opens are the ways into a database.
var opens = map[string]func(ctx context.Context, db *sql.DB) error{
	"schema.Migrate": func(ctx context.Context, db *sql.DB) error { return schema.Migrate(ctx, db, sqlite.New()) },
	"rowlock.Open":   func(_ context.Context, db *sql.DB) error { _, err := rowlock.Open(db, sqlite.New(), nil); return err },
	"once.New":       func(_ context.Context, db *sql.DB) error { _, err := once.New(db, sqlite.New(), nil); return err },
	"latch.New":      func(_ context.Context, db *sql.DB) error { _, err := latch.New(db, sqlite.New(), nil); return err },
}

// BeforeItWrites has each way refuse a pool that open makes with another driver: the error names
// the driver and the cure, and the file is as it was.
func BeforeItWrites(t *testing.T, driver string, open func(path string) (*sql.DB, error)) {
	for way, try := range opens {
		t.Run(way, func(t *testing.T) {
			folder := t.TempDir()
			path := filepath.Join(folder, "app.db")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			db, err := open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			err = try(t.Context(), db)
			if !errors.Is(err, rowlock.ErrConfig) {
				t.Fatalf("it says %v, want an ErrConfig", err)
			}
			for _, has := range []string{"has errors of " + driver + ",", "modernc.org/sqlite", "sqlite.Open(path)"} {
				if !strings.Contains(err.Error(), has) {
					t.Errorf("it says %q, want %q in it", err, has)
				}
			}
			untouched(t, folder)
		})
	}
}

func untouched(t *testing.T, folder string) {
	t.Helper()
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Size() > 0 || f.Name() != "app.db" {
			t.Errorf("after the refusal there is %v, %v: want the empty file alone", info, err)
		}
	}
}
