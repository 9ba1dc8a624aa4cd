package gooserowlock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	gooserowlock "github.com/rowlockdb/rowlock/adapters/goose"

	"github.com/rowlockdb/rowlock/dialect/sqlite"
)

func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "goose")
	check(err)
	defer os.RemoveAll(folder)
	db, err := sqlite.Open(filepath.Join(folder, "app.db"))
	check(err)
	defer db.Close()
	files := fstest.MapFS{"1_orders.sql": &fstest.MapFile{ // or an embed.FS
		Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER PRIMARY KEY);"),
	}}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	check(err)

	results, err := gooserowlock.Up(ctx, db, sqlite.New(), p)
	check(err)
	fmt.Println(len(results), "migration")
	// Output: 1 migration
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
