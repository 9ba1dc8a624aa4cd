package pgorm

import (
	"context"

	"github.com/rowlockdb/rowlock"
	"gorm.io/gorm"
)

type account struct{ Balance int }

func wrong(ctx context.Context, db *gorm.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		var a account
		if err := tx.First(&a, 7).Error; err != nil {
			return err
		}
		return tx.Model(&a).Update("balance", a.Balance-5).Error // want `tx writes under a lock without its fence`
	})
}

func wrongByHand(ctx context.Context, db *gorm.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx := db.Begin()
		defer tx.Rollback()
		if err := tx.Create(&account{}).Error; err != nil { // want `tx writes under a lock without its fence`
			return err
		}
		return tx.Commit().Error
	})
}
