package psqlx

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"
	"github.com/rowlockdb/rowlock"
)

func right(ctx context.Context, db *sqlx.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := l.Fence(ctx, tx.Tx); err != nil {
			return err
		}
		if _, err := tx.NamedExecContext(ctx, "UPDATE account SET balance = :b", nil); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func rightByDoTxOn(ctx context.Context, db *sqlx.DB, locks *rowlock.Client) error {
	begin := func(ctx context.Context, opts *sql.TxOptions) (*sqlx.Tx, *sql.Tx, error) {
		tx, err := db.BeginTxx(ctx, opts)
		if err != nil {
			return nil, nil, err
		}
		return tx, tx.Tx, nil
	}
	return rowlock.DoTxOn(ctx, locks, begin, "account/7", func(ctx context.Context, tx *sqlx.Tx) error {
		_, err := tx.NamedExecContext(ctx, "UPDATE account SET balance = :b", nil)
		return err
	})
}
