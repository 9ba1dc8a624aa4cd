package ppgx

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
)

func right(ctx context.Context, pool *pgxpool.Pool, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback(ctx)
		if err := postgres.Fence(ctx, tx, l); err != nil {
			return err
		}
		inner, err := tx.Begin(ctx) // a savepoint, behind the fence
		if err != nil {
			return err
		}
		if _, err := inner.Exec(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}

func rightByDoTx(ctx context.Context, pool *pgxpool.Pool, locks *rowlock.Client) error {
	return postgres.DoTx(ctx, locks, pool, "account/7", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7")
		return err
	})
}

func rightFunction(ctx context.Context, pool *pgxpool.Pool, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := postgres.Fence(ctx, tx, l); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7")
			return err
		})
	})
}
