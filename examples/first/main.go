// Command first is the program of the README: one lock, one fenced write, on a SQLite file.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/schema"
)

func main() {
	ctx := context.Background()
	db, err := sqlite.Open("first.db")
	check(err)
	defer db.Close()
	check(schema.Migrate(ctx, db, sqlite.New()))
	locks, err := rowlock.Open(db, sqlite.New(), nil)
	check(err)
	defer locks.Close()

	check(locks.DoTx(ctx, "invoice/42", func(ctx context.Context, tx *sql.Tx) error {
		fmt.Println("what tx writes is refused if the lock was taken over")
		return nil
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
