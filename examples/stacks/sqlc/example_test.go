package sqlc_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/demo"
	"github.com/rowlockdb/rowlock/examples/stacks/sqlc/lite"
	"github.com/rowlockdb/rowlock/once"
)

// Fence and WithTx take the same transaction.
func Example() {
	db, locks, done := demo.Open()
	defer done()
	queries := lite.New(db)

	err := locks.Do(context.Background(), "account/alice", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := l.Fence(ctx, tx); err != nil {
			return err
		}
		balance, err := queries.WithTx(tx).Balance(ctx, "alice")
		if err != nil {
			return err
		}
		fmt.Println("alice has", balance)
		return tx.Commit()
	})
	demo.Must(err)
	// Output: alice has 100
}

// once.Do gives the queries their transaction. once.In takes one that was begun.
func Example_once() {
	db, _, done := demo.Open()
	defer done()
	queries := lite.New(db)
	requests, err := once.New(db, sqlite.New(), nil)
	demo.Must(err)
	defer requests.Close()

	for range 2 {
		res, err := requests.Do(context.Background(), once.Request{Key: "deposit/1"}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			return []byte("paid in"), queries.WithTx(tx).Deposit(ctx, lite.DepositParams{Amount: 10, ID: "alice"})
		})
		demo.Must(err)
		fmt.Printf("%s, replayed: %v\n", res.Value, res.Replayed)
	}
	// Output:
	// paid in, replayed: false
	// paid in, replayed: true
}
