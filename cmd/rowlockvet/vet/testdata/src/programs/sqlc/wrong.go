package sqlc

import (
	"context"
	"database/sql"
	"queries"

	"github.com/rowlockdb/rowlock"
)

func wrong(ctx context.Context, db *sql.DB, q *queries.Queries, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		within := q.WithTx(tx)
		if _, err := within.Balance(ctx, 7); err != nil {
			return err
		}
		if err := within.Withdraw(ctx, 7); err != nil { // want `tx writes under a lock without its fence`
			return err
		}
		return tx.Commit()
	})
}

func wrongAtOnce(ctx context.Context, db *sql.DB, q *queries.Queries, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := queries.New(tx).Withdraw(ctx, 7); err != nil { // want `tx writes under a lock without its fence`
			return err
		}
		return tx.Commit()
	})
}
