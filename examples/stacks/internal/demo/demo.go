// Package demo makes what every example of a stack begins with: a SQLite file with rowlock's tables
// and an account, and a client.
package demo

import (
	"context"
	"database/sql"
	"log"
	"os"
	"path/filepath"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
	_ "modernc.org/sqlite" // the driver
)

// Table makes the table that the examples write to, on every database.
const Table = `CREATE TABLE account (id VARCHAR(40) PRIMARY KEY, balance BIGINT NOT NULL)`

// Row opens an account in it.
const Row = `INSERT INTO account VALUES ('alice', 100)`

// Open returns the pool and the client on it. done closes both and removes the file.
func Open() (db *sql.DB, locks *rowlock.Client, done func()) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "rowlock-stacks")
	Must(err)
	db, err = sql.Open("sqlite", "file:"+filepath.Join(dir, "app.db")+
		"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	Must(err)
	Must(schema.Migrate(ctx, db, sqlite.New()))
	for _, query := range []string{Table, Row} {
		_, err = db.ExecContext(ctx, query)
		Must(err)
	}
	locks, err = rowlock.Open(db, sqlite.New(), nil)
	Must(err)
	return db, locks, func() {
		_ = locks.Close()
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

// Must ends the program after an error.
func Must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
