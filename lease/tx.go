package lease

import (
	"context"
	"database/sql"
	"fmt"
)

// Tx is what Fence and UnlockTx need of the caller's transaction: pass a *sql.Tx, a *sqlx.Tx, or a
// *sql.Conn on which BEGIN was sent. [CheckTx] says which types have these methods and cannot work.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
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
	row := r.tx.QueryRowContext(ctx, query, args...)
	// database/sql returns no such row. gorm's *PreparedStmtTX does for a statement that it cannot
	// prepare, and Scan panics.
	if row == nil || *row == (sql.Row{}) {
		return fmt.Errorf("%w: %T failed to run a statement and lost the reason; pass the *sql.Tx within",
			ErrConfig, r.tx)
	}
	return row.Scan(dest...)
}

func (r sqlRunner) Exec(ctx context.Context, query string, args []any) (int64, error) {
	res, err := r.tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
