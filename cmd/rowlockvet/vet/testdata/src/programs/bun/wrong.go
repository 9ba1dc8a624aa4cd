package pbun

import (
	"context"

	"github.com/rowlockdb/rowlock"
	"github.com/uptrace/bun"
)

type account struct{ Balance int }

func wrong(ctx context.Context, db *bun.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.NewUpdate().Model(&account{}).WherePK().Exec(ctx); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit()
}

func wrongFunction(ctx context.Context, db *bun.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			_, err := tx.NewUpdate().Model(&account{}).Exec(ctx) // want `tx writes under a lock without its fence`
			return err
		})
	})
}
