package outerctx

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
)

func wrong(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "k", func(held context.Context, l *rowlock.Lock) error {
		_, err := db.ExecContext(ctx, "UPDATE a SET b = 1") // want `ctx is the caller's context and goes on when the lock is lost: use the one that the function gets from Do`
		return err
	})
}

func blank(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.DoTx(ctx, "k", func(_ context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE a SET b = 1") // want `use the one that the function gets from DoTx`
		return err
	})
}

func unnamed(ctx context.Context, locks *rowlock.Client) error {
	return locks.DoShared(ctx, "k", func(context.Context, *rowlock.Lock) error {
		go func() { _ = work(ctx) }() // want `use the one that the function gets from DoShared`
		return nil
	})
}

func ofPgx(parent context.Context, pool *pgxpool.Pool, locks *rowlock.Client) error {
	return postgres.DoTx(parent, locks, pool, "k", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(parent, "UPDATE a SET b = 1") // want `parent is the caller's context`
		return err
	})
}

func work(context.Context) error { return nil }
