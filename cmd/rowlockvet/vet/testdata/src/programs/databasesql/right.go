package databasesql

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/tokenfence"
)

func right(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
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
	if err := l.Fence(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil {
		return err
	}
	return tx.Commit()
}

func rightByDoTx(ctx context.Context, locks *rowlock.Client) error {
	return locks.DoTx(ctx, "account/7", func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7")
		return err
	})
}

func rightElsewhere(ctx context.Context, other *sql.DB, fence *tokenfence.Fence, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := other.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := fence.Pass(ctx, tx, 7, l.Token()); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil {
			return err
		}
		return tx.Commit()
	})
}

func rightPassedOn(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := enter(ctx, l, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil {
		return err
	}
	return tx.Commit()
}

func enter(ctx context.Context, l *rowlock.Lock, tx *sql.Tx) error { return l.Fence(ctx, tx) }

func rightReads(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	defer l.Unlock(ctx)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SET LOCAL statement_timeout = 1000"); err != nil {
		return err
	}
	_ = tx.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = 7")
	return tx.Rollback()
}

func rightBeforeAndAfter(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	l, err := locks.Lock(ctx, "account/7")
	if err != nil {
		return err
	}
	if err := l.Unlock(ctx); err != nil {
		return err
	}
	later, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := later.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7"); err != nil {
		return err
	}
	return later.Commit()
}

func rightLater(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		write := func() error {
			_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7")
			return err
		}
		if err := l.Fence(ctx, tx); err != nil {
			return err
		}
		return write()
	})
}

func rightSometimes(ctx context.Context, db *sql.DB, locks *rowlock.Client, fenced bool) error {
	return locks.Do(ctx, "account/7", func(ctx context.Context, l *rowlock.Lock) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if fenced {
			if err := l.Fence(ctx, tx); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, "UPDATE account SET balance = balance - 5 WHERE id = 7")
		return err
	})
}
