package dialect_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

// Two applications share a database, each with tables of its own: their keys have nothing to do
// with each other.
func ExamplePrefix() {
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

	for _, prefix := range []string{"billing_", "mail_"} {
		d := sqlite.New(dialect.Prefix(prefix))
		if err := schema.Migrate(ctx, db, d); err != nil {
			log.Fatal(err)
		}
		locks, err := rowlock.Open(db, d, nil)
		if err != nil {
			log.Fatal(err)
		}
		defer locks.Close()
		l, err := locks.TryLock(ctx, "customer/7")
		if err != nil {
			log.Fatal(err)
		}
		defer l.Unlock(ctx)
		fmt.Println(prefix, "has", l.Key())
	}
	// Output:
	// billing_ has customer/7
	// mail_ has customer/7
}
