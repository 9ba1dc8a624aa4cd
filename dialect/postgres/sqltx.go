package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rowlockdb/rowlock/lease"
)

// SQLTx calls f with tx as a *sql.Tx, for what takes nothing else: once.In, forupdate.Locker,
// optimistic. Both are one transaction: f may use either, one statement at a time.
//
// The *sql.Tx ends with f, and tx goes on: the caller commits it or rolls it back. Commit of the
// *sql.Tx fails, and Rollback rolls tx back. If tx is a nested transaction of pgx, Rollback goes to
// its savepoint. The statements of f have the contexts that f gives them.
//
// SQLTx returns f's error, and then leaves tx as f left it. It returns an error that wraps
// lease.ErrConfig if tx or f is nil.
func SQLTx(ctx context.Context, tx pgx.Tx, f func(tx *sql.Tx) error) error {
	if err := checkTx(tx); err != nil {
		return err
	}
	if f == nil {
		return fmt.Errorf("%w: postgres.SQLTx: the function is nil", lease.ErrConfig)
	}
	// Without cancellation, because database/sql would roll back from a goroutine of its own when
	// ctx ends, while f uses tx.
	ctx = context.WithoutCancel(ctx)
	within := &within{ctx: ctx, tx: tx}
	db := sql.OpenDB(within)
	defer db.Close()
	db.SetMaxOpenConns(1)
	as, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("rowlock: postgres.SQLTx: %w", err)
	}
	defer func() {
		within.over = true
		_ = as.Rollback()
	}()
	return f(as)
}

// rollbackTimeout bounds a ROLLBACK that once.In asks for.
const rollbackTimeout = 5 * time.Second

// within is database/sql's only connection, inside a transaction of pgx.
type within struct {
	ctx  context.Context
	tx   pgx.Tx
	over bool // f has returned
}

var errBegun = errors.New("rowlock: postgres.SQLTx: one transaction is all there is")

func (w *within) Connect(context.Context) (driver.Conn, error) { return w, nil }
func (w *within) Driver() driver.Driver                        { return w }
func (w *within) Open(string) (driver.Conn, error)             { return nil, errBegun }
func (w *within) Close() error                                 { return nil }

// Begin begins nothing: the transaction is open.
func (w *within) Begin() (driver.Tx, error) { return w, nil }

// BeginTx is Begin. The options are those of the transaction that is open.
func (w *within) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return w, nil }

// Commit fails: the caller of SQLTx would not know of it.
func (w *within) Commit() error {
	return errors.New("rowlock: postgres.SQLTx: commit the pgx.Tx after SQLTx, not the *sql.Tx within")
}

func (w *within) Rollback() error {
	if w.over {
		return nil
	}
	ctx, cancel := context.WithTimeout(w.ctx, rollbackTimeout)
	defer cancel()
	return w.tx.Rollback(ctx)
}

// CheckNamedValue leaves every argument to pgx.
func (w *within) CheckNamedValue(*driver.NamedValue) error { return nil }

func (w *within) ExecContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Result, error) {
	tag, err := w.tx.Exec(ctx, query, values(args)...)
	if err != nil {
		return nil, err
	}
	return driver.RowsAffected(tag.RowsAffected()), nil
}

func (w *within) QueryContext(
	ctx context.Context, query string, args []driver.NamedValue,
) (driver.Rows, error) {
	asText := pgx.QueryResultFormats{pgx.TextFormatCode}
	rows, err := w.tx.Query(ctx, query, append([]any{asText}, values(args)...)...)
	if err != nil {
		return nil, err
	}
	more := rows.Next() // the columns are not known before
	if err := rows.Err(); err != nil {
		rows.Close()
		return nil, err
	}
	return &rowsWithin{types: w.tx.Conn().TypeMap(), rows: rows, peeked: true, more: more}, nil
}

func values(args []driver.NamedValue) []any {
	list := make([]any, len(args))
	for n, a := range args {
		list[n] = a.Value
	}
	return list
}

// Prepare remembers the query: pgx prepares it when it runs, and keeps it for the connection.
func (w *within) Prepare(query string) (driver.Stmt, error) { return stmtWithin{w, query}, nil }

type stmtWithin struct {
	*within
	query string
}

func (stmtWithin) NumInput() int { return -1 }

func (s stmtWithin) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.within.ExecContext(ctx, s.query, args)
}

func (s stmtWithin) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.within.QueryContext(ctx, s.query, args)
}

// Exec is never called, because there is ExecContext.
func (stmtWithin) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }

// Query is never called, because there is QueryContext.
func (stmtWithin) Query([]driver.Value) (driver.Rows, error) { return nil, driver.ErrSkip }
