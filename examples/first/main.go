// Command first is the program of the README: one lock, one fenced write, on a SQLite file.
package main

import (
	"context"
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

	check(locks.Do(ctx, "invoice/42", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := l.Fence(ctx, tx); err != nil { // refused if the lock was taken over
			return err
		}
		fmt.Println("writing under token", l.Token())
		return tx.Commit()
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
