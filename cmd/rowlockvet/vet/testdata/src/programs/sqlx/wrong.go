package psqlx

import (
	"context"

	"github.com/jmoiron/sqlx"
	"github.com/rowlockdb/rowlock"
)

func wrong(ctx context.Context, db *sqlx.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var balance int
	if err := tx.GetContext(ctx, &balance, "SELECT balance FROM account WHERE id = 7"); err != nil {
		return err
	}
	if _, err := tx.NamedExecContext(ctx, "UPDATE account SET balance = :b", balance); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit()
}

func wrongMust(ctx context.Context, db *sqlx.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx := db.MustBegin()
		defer tx.Rollback()
		tx.MustExec("UPDATE account SET balance = balance - 5 WHERE id = 7") // want `tx writes under a lock without its fence`
		return tx.Commit()
	})
}

func wrongFunction(ctx context.Context, db *sqlx.DB, locks *rowlock.Client, query string) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.Beginx()
		if err != nil {
			return err
		}
		if _, err := sqlx.NamedExecContext(ctx, tx, query, nil); err != nil { // want `tx writes under a lock without its fence`
			return err
		}
		return tx.Commit()
	})
}
