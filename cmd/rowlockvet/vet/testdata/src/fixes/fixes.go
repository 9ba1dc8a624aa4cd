package fixes

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock"
)

func unlock(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "k") // want `l is not unlocked`
	if err != nil {
		return err
	}
	return l.Progress()
}

func fence(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "k", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "UPDATE a SET b = 1"); err != nil { // want `tx writes under a lock`
			return err
		}
		return tx.Commit()
	})
}

func renamed(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "k", func(held context.Context, l *rowlock.Lock) error {
		if err := db.PingContext(ctx); err != nil { // want `ctx is the caller's context`
			return err
		}
		return db.PingContext(ctx)
	})
}

func unnamed(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "k", func(context.Context, *rowlock.Lock) error {
		return db.PingContext(ctx) // want `ctx is the caller's context`
	})
}

func blank(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "k", func(_ context.Context, _ *rowlock.Lock) error {
		return db.PingContext(ctx) // want `ctx is the caller's context`
	})
}
