package lease

import (
	"context"
	"database/sql"
	"fmt"
)

// Tx is what Fence and UnlockTx need of the caller's transaction. *sql.Tx, *sqlx.Tx and *sql.Conn
// have these methods.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// CheckTx returns an error that wraps [ErrConfig] for a value that cannot be a transaction: nil, a
// nil pointer, or a pool (*sql.DB, *sqlx.DB). A pool runs each statement in a transaction of its
// own, so that what one statement checks or locks is unlocked at once. CheckTx cannot see whether a
// *sql.Conn has sent BEGIN.
func CheckTx(tx Tx) error {
	if isNil(tx) {
		return fmt.Errorf("%w: the transaction is nil; begin one (BeginTx)", ErrConfig)
	}
	if _, pool := tx.(interface{ SetMaxOpenConns(int) }); pool {
		return fmt.Errorf("%w: %T is a pool and no transaction: each statement unlocks at once what it "+
			"locks; begin one on it (BeginTx)", ErrConfig, tx)
	}
	return nil
}

// Runner runs one statement in the caller's transaction. It is narrower than [Tx], because a
// *sql.Row cannot be made outside of database/sql, so that a transaction of another kind (pgx.Tx)
// could not return one.
type Runner interface {
	// QueryOne scans the first row into dest, or returns sql.ErrNoRows.
	QueryOne(ctx context.Context, query string, args []any, dest ...any) error
	// Exec returns how many rows the statement changed.
	Exec(ctx context.Context, query string, args []any) (int64, error)
}

// InTx returns tx as a Runner.
func InTx(tx Tx) Runner { return sqlRunner{tx} }

type sqlRunner struct{ tx Tx }

func (r sqlRunner) QueryOne(ctx context.Context, query string, args []any, dest ...any) error {
	return r.tx.QueryRowContext(ctx, query, args...).Scan(dest...)
}

func (r sqlRunner) Exec(ctx context.Context, query string, args []any) (int64, error) {
	res, err := r.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
