// Command postgres is the program of the README on PostgreSQL: one lock, one fenced write, on the
// database that DATABASE_URL names.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/schema"
)

func main() {
	ctx := context.Background()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	check(err)
	defer db.Close()
	check(schema.Migrate(ctx, db, postgres.New()))
	locks, err := rowlock.Open(db, postgres.New(), nil)
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
