package pgorm

import (
	"context"

	"github.com/rowlockdb/rowlock"
	"gorm.io/gorm"
)

func right(ctx context.Context, db *gorm.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		return db.Transaction(func(tx *gorm.DB) error {
			if err := l.Fence(ctx, tx.Statement.ConnPool.(rowlock.Tx)); err != nil {
				return err
			}
			return tx.Transaction(func(inner *gorm.DB) error {
				return inner.Save(&account{}).Error
			})
		})
	})
}

func rightByHand(ctx context.Context, db *gorm.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx := db.Begin()
		defer tx.Rollback()
		conn := tx.Statement.ConnPool
		if err := l.Fence(ctx, conn.(rowlock.Tx)); err != nil {
			return err
		}
		if err := tx.Save(&account{}).Error; err != nil {
			return err
		}
		return tx.Commit().Error
	})
}
