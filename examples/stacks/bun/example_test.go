package bun_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/demo"
	"github.com/rowlockdb/rowlock/once"
)

// Fence takes tx.Tx, the *sql.Tx beneath the bun.Tx.
func Example() {
	pool, locks, done := demo.Open()
	defer done()
	db := bun.NewDB(pool, sqlitedialect.New())

	err := locks.Do(context.Background(), "account/alice", func(ctx context.Context, l *rowlock.Lock) error {
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if err := l.Fence(ctx, tx.Tx); err != nil {
				return err // bun rolls back
			}
			var a Account
			if err := tx.NewSelect().Model(&a).Where("id = ?", "alice").Scan(ctx); err != nil {
				return err
			}
			fmt.Println("alice has", a.Balance)
			return nil
		})
	})
	demo.Must(err)
	// Output: alice has 100
}

// once.In takes tx.Tx too.
func Example_once() {
	pool, _, done := demo.Open()
	defer done()
	ctx, db := context.Background(), bun.NewDB(pool, sqlitedialect.New())
	requests, err := once.New(db.DB, sqlite.New(), nil)
	demo.Must(err)
	defer requests.Close()

	for range 2 {
		demo.Must(db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			res, err := requests.In(ctx, tx.Tx, once.Request{Key: "deposit/1"}, func(ctx context.Context, _ *sql.Tx) ([]byte, error) {
				return []byte("paid in"), deposit(ctx, tx, 10)
			})
			fmt.Printf("%s, replayed: %v\n", res.Value, res.Replayed)
			return err
		}))
	}
	// Output:
	// paid in, replayed: false
	// paid in, replayed: true
}
