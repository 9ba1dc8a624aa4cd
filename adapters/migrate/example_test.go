package migraterowlock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	migraterowlock "github.com/rowlockdb/rowlock/adapters/migrate"

	"github.com/rowlockdb/rowlock"
	dialect "github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "migrate")
	check(err)
	defer os.RemoveAll(folder)
	db, err := dialect.Open(filepath.Join(folder, "app.db"))
	check(err)
	defer db.Close()
	check(schema.Migrate(ctx, db, dialect.New()))
	locks, err := rowlock.Open(db, dialect.New(), nil)
	check(err)
	defer locks.Close()

	files, err := iofs.New(fstest.MapFS{"1_orders.up.sql": &fstest.MapFile{ // or an embed.FS
		Data: []byte("CREATE TABLE orders (id INTEGER PRIMARY KEY)"),
	}}, ".")
	check(err)
	own, err := sqlite.WithInstance(db, &sqlite.Config{})
	check(err)
	driver, err := migraterowlock.New(own, locks, "migrations", rowlock.TTL(2*time.Minute))
	check(err)
	m, err := migrate.NewWithInstance("iofs", files, "app", driver)
	check(err)
	check(m.Up())
	version, _, err := m.Version()
	check(err)
	fmt.Println("version", version)
	// Output: version 1
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
