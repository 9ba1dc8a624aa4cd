package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

// The DSN has what a file needs that several processes write to. WAL lets readers and the writer
// work beside each other, busy_timeout waits for the file's one write lock, and _txlock=immediate
// takes that lock when a transaction begins: a deferred one that reads first cannot always write
// afterwards.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rowlock")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+
		"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
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
