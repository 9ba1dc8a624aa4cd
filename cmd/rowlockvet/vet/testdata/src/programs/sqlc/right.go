package sqlc

import (
	"context"
	"database/sql"
	"queries"

	"github.com/rowlockdb/rowlock"
)

func right(ctx context.Context, db *sql.DB, q *queries.Queries, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		within := q.WithTx(tx)
		if err := l.Fence(ctx, tx); err != nil {
			return err
		}
		if err := within.Withdraw(ctx, 7); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func rightByDoTx(ctx context.Context, q *queries.Queries, locks *rowlock.Client) error {
	return locks.DoTx(ctx, "account/7", func(ctx context.Context, tx *sql.Tx) error {
		return q.WithTx(tx).Withdraw(ctx, 7)
	})
}
