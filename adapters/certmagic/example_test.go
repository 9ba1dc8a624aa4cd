package certrowlock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/caddyserver/certmagic"

	certrowlock "github.com/rowlockdb/rowlock/adapters/certmagic"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "certmagic")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "app.db"))
	check(err)
	defer db.Close()
	check(schema.Migrate(ctx, db, sqlite.New()))
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	check(err)
	defer locks.Close()

	storage, err := certrowlock.New(&certmagic.FileStorage{Path: folder}, locks)
	check(err)
	certmagic.Default.Storage = storage // all of certmagic locks through the database

	check(storage.Lock(ctx, "issue_cert_example.com"))
	l, _ := storage.Held("issue_cert_example.com")
	fmt.Println(l.Key())
	check(storage.Unlock(ctx, "issue_cert_example.com"))
	// Output: certmagic/issue_cert_example.com
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
