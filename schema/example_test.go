package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

// Every process may migrate when it starts: the first makes the tables, and the others find them.
func ExampleMigrate() {
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

	for range 2 {
		if err := schema.Migrate(ctx, db, sqlite.New()); err != nil {
			log.Fatal(err)
		}
	}
	var version int
	err = db.QueryRow(`SELECT value FROM rowlock_meta WHERE name = 'schema_version'`).Scan(&version)
	fmt.Println(version == schema.Version, err)
	// Output:
	// true <nil>
}

// Every process of a service may run its migrations when it starts: one at a time, with any tool.
func ExampleAlone() {
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
	files := fstest.MapFS{"00001_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INT);\n")}}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files)
	if err != nil {
		log.Fatal(err)
	}

	d := sqlite.New()
	err = schema.Alone(ctx, db, d, func(ctx context.Context) error {
		_, err := provider.Up(ctx) // goose, or any other
		return err
	})
	fmt.Println(err)
	// Output:
	// <nil>
}

// The files are goose migrations. Copy them among your own, under the next free numbers.
func ExampleFS() {
	files, err := schema.FS(postgres.New(dialect.Prefix("billing_")))
	if err != nil {
		log.Fatal(err)
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Join(names, "\n"))
	// Output:
	// 00031_core.sql
	// 00032_shared.sql
	// 00033_once.sql
	// 00034_latch.sql
	// 00035_forupdate.sql
	// 00036_trace.sql
}

// For golang-migrate, Flyway and psql: two texts of plain SQL.
func ExampleSQL() {
	up, down, err := schema.SQL(postgres.New())
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "migrations")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{
		"0007_rowlock.up.sql":   up,
		"0007_rowlock.down.sql": down,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
}

// A migration of the application's protects its table, with this as its text.
func ExampleProtectSQL() {
	accounts := schema.Protection{Table: "account", Key: "account/{id}", Exempt: []string{"migrator"}}
	up, down, err := schema.ProtectSQL(postgres.New(), accounts) // for a migration of yours
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Count(up, "DO $protect$"), strings.Count(down, "DO $protect$"))
	// Output: 1 1
}

// A program can protect its tables when it starts.
func ExampleProtect() {
	ctx := context.Background()
	var db *sql.DB // of PostgreSQL
	accounts := schema.Protection{Table: "account", Key: "account/{id}", Exempt: []string{"migrator"}}
	err := schema.Protect(ctx, db, postgres.New(), accounts)
	if errors.Is(err, rowlock.ErrTable) {
		log.Fatal(err) // it is a view, or has no column id
	}
}
