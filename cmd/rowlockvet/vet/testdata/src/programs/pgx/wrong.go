package ppgx

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rowlockdb/rowlock"
)

func wrong(ctx context.Context, pool *pgxpool.Pool, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err := tx.Exec(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit(ctx)
}

func wrongFunction(ctx context.Context, pool *pgxpool.Pool, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7") // want `tx writes under a lock without its fence`
			return err
		})
	})
}
