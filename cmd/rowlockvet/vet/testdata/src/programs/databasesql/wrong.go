package databasesql

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock"
)

func wrong(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
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
	if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil { // want `tx writes under a lock without its fence, .*: call l.Fence first in the transaction, or let DoTx begin it`
		return err
	}
	return tx.Commit()
}

func wrongInDo(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.Exec("UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil { // want `tx writes under a lock without its fence`
			return err
		}
		return tx.Commit()
	})
}

func wrongWithoutName(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.DoShared(ctx, "account/7", func(ctx context.Context, _ *rowlock.Lock) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		err = tx.QueryRowContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"+" RETURNING balance").Scan(new(int)) // want `call Fence of the lock`
		if err != nil {
			return err
		}
		return tx.Commit()
	})
}

func wrongTooLate(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	ls, err := locks.LockAll(ctx, []string{"account/7", "account/8"})
	if err != nil {
		return err
	}
	defer ls.Unlock(ctx)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil { // want `call ls.Fence first`
		return err
	}
	if err := ls.UnlockTx(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

func wrongWithTab(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	const pay = "UPDATE\taccount SET balance = 0"
	if _, err := tx.ExecContext(ctx, pay); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit()
}

func wrongWithComment(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	const pay = "/* pay: 7 */ UPDATE account SET balance = 0"
	if _, err := tx.ExecContext(ctx, pay); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit()
}

func wrongWithLongComment(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	const pay = `/* pay
		it */
		-- and more
		UPDATE account SET balance = 0`
	if _, err := tx.ExecContext(ctx, pay); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit()
}

func wrongWithTruncate(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	const pay = "TRUNCATE account"
	if _, err := tx.ExecContext(ctx, pay); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit()
}

func wrongWithCall(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	const pay = "CALL pay(7)"
	if _, err := tx.ExecContext(ctx, pay); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit()
}

func wrongDeclared(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	var tx, failed = db.Begin()
	if failed != nil {
		return failed
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM account"); err != nil { // want `tx writes under a lock without its fence`
		return err
	}
	return tx.Commit()
}
