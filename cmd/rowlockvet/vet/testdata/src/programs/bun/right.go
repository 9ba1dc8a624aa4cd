package pbun

import (
	"context"

	"github.com/rowlockdb/rowlock"
	"github.com/uptrace/bun"
)

func right(ctx context.Context, db *bun.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if err := l.Fence(ctx, tx.Tx); err != nil {
				return err
			}
			_, err := tx.NewUpdate().Model(&account{}).Exec(ctx)
			return err
		})
	})
}

func rightReads(ctx context.Context, db *bun.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		return tx.NewSelect().Model(&account{}).Scan(ctx)
	})
}
