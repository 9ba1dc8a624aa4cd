package gorm_test

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"
	gormtests "gorm.io/gorm/utils/tests"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/sqlite"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/demo"
	"github.com/rowlockdb/rowlock/once"
)

// sqlTx returns the transaction that gorm is in, also with PrepareStmt.
func sqlTx(tx *gorm.DB) (*sql.Tx, error) {
	pool := tx.Statement.ConnPool
	if prepared, ok := pool.(*gorm.PreparedStmtTX); ok {
		pool = prepared.Tx
	}
	if tx, ok := pool.(*sql.Tx); ok {
		return tx, nil
	}
	return nil, fmt.Errorf("gorm is in no transaction but in a %T: call db.Transaction", pool)
}

// openGorm has gorm on the pool that rowlock has. Yours is postgres.New(postgres.Config{Conn: db})
// or mysql.New(mysql.Config{Conn: db}), of gorm.io/driver.
func openGorm(pool *sql.DB) *gorm.DB {
	db, err := gorm.Open(gormtests.DummyDialector{}, &gorm.Config{ConnPool: pool})
	demo.Must(err)
	return db
}

// Fence takes the *sql.Tx beneath the *gorm.DB of the transaction.
func Example() {
	pool, locks, done := demo.Open()
	defer done()
	db := openGorm(pool)

	err := locks.Do(context.Background(), "account/alice", func(ctx context.Context, l *rowlock.Lock) error {
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			fences, err := sqlTx(tx)
			if err != nil {
				return err
			}
			if err := l.Fence(ctx, fences); err != nil {
				return err // gorm rolls back
			}
			var a Account
			if err := tx.Take(&a, "id = ?", "alice").Error; err != nil {
				return err
			}
			fmt.Println("alice has", a.Balance)
			return nil
		})
	})
	demo.Must(err)
	// Output: alice has 100
}

// once.In takes the same *sql.Tx.
func Example_once() {
	pool, _, done := demo.Open()
	defer done()
	ctx, db := context.Background(), openGorm(pool)
	requests, err := once.New(pool, sqlite.New(), nil)
	demo.Must(err)
	defer requests.Close()

	for range 2 {
		demo.Must(db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			in, err := sqlTx(tx)
			if err != nil {
				return err
			}
			res, err := requests.In(ctx, in, once.Request{Key: "deposit/1"}, func(ctx context.Context, _ *sql.Tx) ([]byte, error) {
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
