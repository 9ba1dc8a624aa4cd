package lease

import (
	"context"
	"database/sql"
	"fmt"
)

// Tx is what Fence and UnlockTx need of the caller's transaction: *sql.Tx, *sqlx.Tx and *sql.Conn have it.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// CheckTx returns an error that wraps [ErrConfig] for what is certainly no transaction: nil, a nil pointer, and a pool (*sql.DB, *sqlx.DB),
// which has each statement in a transaction of its own, so that what is checked or locked there is let go at once. Of a *sql.Conn it
// cannot be told whether a BEGIN was sent.
func CheckTx(tx Tx) error {
	if isNil(tx) {
		return fmt.Errorf("%w: the transaction is nil; begin one (BeginTx)", ErrConfig)
	}
	if _, pool := tx.(interface{ SetMaxOpenConns(int) }); pool {
		return fmt.Errorf("%w: %T is a pool and no transaction: what is locked there is let go at once; begin one on it (BeginTx)", ErrConfig, tx)
	}
	return nil
}

// Runner runs one statement in the caller's transaction. It is narrower than [Tx] because a *sql.Row cannot be made
// outside database/sql, so that a transaction of another kind (pgx.Tx) could not offer one.
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
