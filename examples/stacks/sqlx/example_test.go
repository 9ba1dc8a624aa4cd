package sqlx_test

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/demo"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/once"
)

// DoTxOn gives the function a *sqlx.Tx.
func Example() {
	pool, locks, done := demo.Open()
	defer done()
	db := sqlx.NewDb(pool, "sqlite")

	begin := func(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, *sql.Tx, error) {
		tx, err := db.BeginTxx(ctx, opts)
		if err != nil {
			return nil, nil, err
		}
		return tx, tx.Tx, nil
	}
	demo.Must(rowlock.DoTxOn(context.Background(), locks, begin, "account/alice",
		func(ctx context.Context, tx *sqlx.Tx) error {
			var balance int64
			err := tx.GetContext(ctx, &balance, `SELECT balance FROM account WHERE id = 'alice'`)
			fmt.Println("alice has", balance)
			return err
		}))
	// Output: alice has 100
}

// Fence takes the *sqlx.Tx itself.
func Example_fence() {
	pool, locks, done := demo.Open()
	defer done()
	db := sqlx.NewDb(pool, "sqlite")

	err := locks.Do(context.Background(), "account/alice", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := l.Fence(ctx, tx); err != nil {
			return err
		}
		var balance int64
		if err := tx.GetContext(ctx, &balance, `SELECT balance FROM account WHERE id = 'alice'`); err != nil {
			return err
		}
		fmt.Println("alice has", balance)
		return tx.Commit()
	})
	demo.Must(err)
	// Output: alice has 100
}

// once.In takes the field Tx of the *sqlx.Tx, and the Locker the *sqlx.Tx itself.
func Example_once() {
	pool, _, done := demo.Open()
	defer done()
	ctx, db := context.Background(), sqlx.NewDb(pool, "sqlite")
	requests, err := once.New(db, sqlite.New(), nil)
	demo.Must(err)
	defer requests.Close()
	locker, err := forupdate.NewLocker(db, sqlite.New())
	demo.Must(err)
	defer locker.Close()

	for range 2 {
		tx, err := db.BeginTxx(ctx, nil)
		demo.Must(err)
		demo.Must(locker.Lock(ctx, tx, "account/alice"))
		res, err := requests.In(ctx, tx.Tx, once.Request{Key: "deposit/1"}, func(ctx context.Context, _ *sql.Tx) ([]byte, error) {
			_, err := tx.ExecContext(ctx, `UPDATE account SET balance = balance + 10`)
			return []byte("paid in"), err
		})
		demo.Must(err)
		demo.Must(tx.Commit())
		fmt.Printf("%s, replayed: %v\n", res.Value, res.Replayed)
	}
	// Output:
	// paid in, replayed: false
	// paid in, replayed: true
}
