package lease

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
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

// CheckTx returns an error that wraps [ErrConfig] for a value that cannot be a transaction. The
// error names the type and what to pass instead.
//
//   - nil, or a nil pointer.
//   - A pool (*sql.DB, *sqlx.DB, bun's *DB, gorm's *PreparedStmtDB). A pool runs each statement in
//     a transaction of its own, so that what one statement checks or locks is unlocked at once.
//   - A type with neither Rollback, by which transactions are known, nor Raw, by which connections
//     are: it may be a wrapped pool.
//   - A transaction whose methods send another statement than they are given: bun's Tx and Conn.
//
// CheckTx cannot see whether a *sql.Conn has sent BEGIN. It knows bun's and gorm's types by name,
// so that it does not know a type that embeds one of them.
func CheckTx(tx Tx) error {
	if t, ok := tx.(*sql.Tx); ok && t != nil { // what most callers pass
		return nil
	}
	if isNil(tx) {
		return fmt.Errorf("%w: the transaction is nil; begin one (BeginTx)", ErrConfig)
	}
	if cure, ok := cures[nameOf(tx)]; ok {
		return fmt.Errorf("%w: %T %s", ErrConfig, tx, cure)
	}
	if _, pool := tx.(interface{ SetMaxOpenConns(int) }); pool {
		return fmt.Errorf("%w: %T is a pool and no transaction: each statement unlocks at once what it "+
			"locks; begin one on it (BeginTx)", ErrConfig, tx)
	}
	switch tx.(type) {
	case interface{ Rollback() error }, interface{ Raw(f func(any) error) error }:
		return nil
	}
	return fmt.Errorf("%w: %T may be a pool, on which each statement unlocks at once what it locks: pass "+
		"the *sql.Tx in it, or give the type the method Rollback() error of the transaction", ErrConfig, tx)
}

// typeName is a type, or a pointer to it, of a package that this one must not import.
type typeName struct{ path, name string }

const (
	bun  = "github.com/uptrace/bun"
	gorm = "gorm.io/gorm"
)

// cures say for types that have the methods of a Tx what is wrong with them, and what to pass.
var cures = map[typeName]string{
	// bun has placeholders of its own: ?1 is its second argument, and $1 is text, so that
	// PostgreSQL gets $1 and nothing for it.
	{bun, "Tx"}: "rewrites the placeholders of a statement, which breaks rowlock's; " +
		"pass its field Tx, the *sql.Tx",
	{bun, "Conn"}: "rewrites the placeholders of a statement, which breaks rowlock's; " +
		"pass its field Conn, the *sql.Conn, on which BEGIN was sent",
	// It has no SetMaxOpenConns, by which pools are known.
	{gorm, "PreparedStmtDB"}: "is a pool and no transaction: each statement unlocks at once what it " +
		"locks; begin one (db.Begin or db.Transaction) and pass its *sql.Tx",
}

func nameOf(tx Tx) typeName {
	t := reflect.TypeOf(tx)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return typeName{t.PkgPath(), t.Name()}
}

// Transaction is one that rowlock begins and ends for DoTx; see dialect/postgres.
type Transaction interface {
	Runner
	// Commit ends with ctx. An error that is not the server's own leaves the outcome unknown.
	Commit(ctx context.Context) error
	// End rolls back what was not committed and lets go of the connection. It ends with ctx.
	End(ctx context.Context, committed bool)
}
