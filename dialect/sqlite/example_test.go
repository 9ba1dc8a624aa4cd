package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rowlock")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "app.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := schema.Migrate(ctx, db, sqlite.New()); err != nil {
		log.Fatal(err)
	}
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	l, err := locks.Lock(ctx, "backup")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Unlock(ctx)
	tx, err := db.BeginTx(l.Context(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback()
	fmt.Println(l.Fence(ctx, tx))
	// Output:
	// <nil>
}

// Foreign keys are SQLite's default, unchecked, unless you say otherwise.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "rowlock")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlite.Open(filepath.Join(dir, "app.db"), "foreign_keys(1)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var mode string
	var foreignKeys bool
	err = db.QueryRow(`SELECT journal_mode, foreign_keys FROM pragma_journal_mode, pragma_foreign_keys`).
		Scan(&mode, &foreignKeys)
	fmt.Println(mode, foreignKeys, err)

	_, err = sqlite.Open("/no/such/folder/app.db")
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output:
	// wal true <nil>
	// true
}
