package pgx_test

import (
	"context"
	"database/sql"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/demo"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/once"
)

// postgres.DoTx gives the function a pgx.Tx.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // …?pool_max_conns=14
	demo.Must(err)
	defer pool.Close() // last: it waits for the client's connections
	db, err := postgres.OpenPool(pool)
	demo.Must(err)
	defer db.Close()
	locks, err := rowlock.Open(db, postgres.New(), nil)
	demo.Must(err)
	defer locks.Close()

	demo.Must(postgres.DoTx(ctx, locks, pool, "account/alice",
		func(ctx context.Context, tx pgx.Tx) error { return deposit(ctx, tx, 10) }))
}

// postgres.Fence takes the pgx.Tx itself.
func Example_fence() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // …?pool_max_conns=14
	demo.Must(err)
	defer pool.Close() // last: it waits for the client's connections
	db, err := postgres.OpenPool(pool)
	demo.Must(err)
	defer db.Close()
	locks, err := rowlock.Open(db, postgres.New(), nil)
	demo.Must(err)
	defer locks.Close()

	err = locks.Do(ctx, "account/alice", func(ctx context.Context, l *rowlock.Lock) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := postgres.Fence(ctx, tx, l); err != nil {
				return err // BeginFunc rolls back
			}
			return deposit(ctx, tx, 10)
		})
	})
	demo.Must(err)
}

// postgres.SQLTx makes a *sql.Tx of a pgx.Tx for once.In and forupdate.
func Example_once() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	demo.Must(err)
	defer pool.Close()
	db, err := postgres.OpenPool(pool)
	demo.Must(err)
	defer db.Close()
	requests, err := once.New(db, postgres.New(), nil)
	demo.Must(err)
	defer requests.Close()
	locker, err := forupdate.NewLocker(db, postgres.New())
	demo.Must(err)
	defer locker.Close()

	demo.Must(pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		return postgres.SQLTx(ctx, tx, func(in *sql.Tx) error {
			if err := locker.Lock(ctx, in, "account/alice"); err != nil {
				return err
			}
			_, err := requests.In(ctx, in, once.Request{Key: "deposit/1"}, func(ctx context.Context, _ *sql.Tx) ([]byte, error) {
				return []byte("paid in"), deposit(ctx, tx, 10)
			})
			return err
		})
	}))
}
