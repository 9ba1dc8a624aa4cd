// Package sqlc_test has rowlock in transactions of queries that sqlc has generated: for
// database/sql in package lite, and for pgx in package pg.
package sqlc_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/bed"
	"github.com/rowlockdb/rowlock/examples/stacks/sqlc/lite"
	"github.com/rowlockdb/rowlock/examples/stacks/sqlc/pg"
)

func TestSqlcOnDatabaseSQL(t *testing.T) {
	bed.Each(t, []string{"sqlite"}, func(t *testing.T, d bed.Database) {
		queries := lite.New(d.DB)
		bed.Run(t, d, bed.Stack{Pool: d.DB, Dialect: d.Dialect, Begin: func(ctx context.Context) (bed.Tx, error) {
			tx, err := d.DB.BeginTx(ctx, nil)
			if err != nil {
				return bed.Tx{}, err
			}
			return bed.OnSQL(tx, tx, func(ctx context.Context, amount int64) error {
				return queries.WithTx(tx).Deposit(ctx, lite.DepositParams{Amount: amount, ID: "alice"})
			}), nil
		}})
	})
}

func TestSqlcOnPgx(t *testing.T) {
	bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
		pool, err := pgxpool.New(t.Context(), d.DSN+"&pool_max_conns=12")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		db, err := postgres.OpenPool(pool)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		queries := pg.New(pool)
		begin := func(ctx context.Context) (bed.Tx, error) {
			tx, err := pool.Begin(ctx)
			if err != nil {
				return bed.Tx{}, err
			}
			return bed.OnPgx(tx, func(ctx context.Context, amount int64) error {
				return queries.WithTx(tx).Deposit(ctx, pg.DepositParams{Amount: amount, ID: "alice"})
			}), nil
		}
		bed.Run(t, d, bed.Stack{Pool: db, Dialect: d.Dialect, Guesses: true, Begin: begin})
	})
}
