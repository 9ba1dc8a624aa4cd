package entgo_test

import (
	"context"
	"database/sql"
	"fmt"

	"entgo.io/ent/dialect"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/examples/stacks/entgo"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/demo"
	"github.com/rowlockdb/rowlock/once"
)

// The transaction is begun on the pool. Fence takes it, and ent works inside it.
func Example() {
	db, locks, done := demo.Open()
	defer done()

	err := locks.Do(context.Background(), "account/alice", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := l.Fence(ctx, tx); err != nil {
			return err
		}
		client := entgo.In(tx, dialect.SQLite)
		alice, err := client.Account.Get(ctx, "alice")
		if err != nil {
			return err
		}
		fmt.Println("alice has", alice.Balance)
		return tx.Commit()
	})
	demo.Must(err)
	// Output: alice has 100
}

// once.Do begins the transaction, and ent works inside it too. once.In takes one that was begun.
func Example_once() {
	db, _, done := demo.Open()
	defer done()
	requests, err := once.New(db, sqlite.New(), nil)
	demo.Must(err)
	defer requests.Close()

	for range 2 {
		res, err := requests.Do(context.Background(), once.Request{Key: "deposit/1"}, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			client := entgo.In(tx, dialect.SQLite)
			return []byte("paid in"), client.Account.UpdateOneID("alice").AddBalance(10).Exec(ctx)
		})
		demo.Must(err)
		fmt.Printf("%s, replayed: %v\n", res.Value, res.Replayed)
	}
	// Output:
	// paid in, replayed: false
	// paid in, replayed: true
}
