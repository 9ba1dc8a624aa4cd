package faultdb

import (
	"context"
	"database/sql/driver"
	"errors"
)

// All of this serves drivers without the forms that take a context, as database/sql serves them. It no longer can: the
// wrapper has those forms for every driver.

// What database/sql/driver calls deprecated is all that such a driver has.
type (
	oldConn      interface{ Begin() (driver.Tx, error) }
	oldConverter interface {
		ColumnConverter(i int) driver.ValueConverter
	}
	oldStmt interface {
		Exec(args []driver.Value) (driver.Result, error)
		Query(args []driver.Value) (driver.Rows, error)
	}
)

func prepareReal(ctx context.Context, inner driver.Conn, query string) (driver.Stmt, error) {
	if preparer, ok := inner.(driver.ConnPrepareContext); ok {
		return preparer.PrepareContext(ctx, query)
	}
	s, err := inner.Prepare(query)
	if err == nil && ctx.Err() != nil {
		_ = s.Close()
		return nil, ctx.Err()
	}
	return s, err
}

func beginReal(ctx context.Context, inner driver.Conn, opts driver.TxOptions) (driver.Tx, error) {
	if beginner, ok := inner.(driver.ConnBeginTx); ok {
		return beginner.BeginTx(ctx, opts)
	}
	if opts != (driver.TxOptions{}) {
		return nil, errors.New("faultdb: driver does not support transaction options")
	}
	t, err := oldConn(inner).Begin()
	if err == nil && ctx.Err() != nil {
		_ = t.Rollback()
		return nil, ctx.Err()
	}
	return t, err
}

func execReal(ctx context.Context, inner driver.Stmt, args []driver.NamedValue) (driver.Result, error) {
	if execer, ok := inner.(driver.StmtExecContext); ok {
		return execer.ExecContext(ctx, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	return oldStmt(inner).Exec(values)
}

func queryReal(ctx context.Context, inner driver.Stmt, args []driver.NamedValue) (driver.Rows, error) {
	if queryer, ok := inner.(driver.StmtQueryContext); ok {
		return queryer.QueryContext(ctx, args)
	}
	values, err := unnamed(ctx, args)
	if err != nil {
		return nil, err
	}
	return oldStmt(inner).Query(values)
}

// unnamed returns the arguments for a driver that knows neither names nor contexts.
func unnamed(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, nv := range args {
		if nv.Name != "" {
			return nil, errors.New("faultdb: driver does not support named parameters")
		}
		values[i] = nv.Value
	}
	return values, ctx.Err()
}

// numbered is the way back, for callers of the wrapper that have no context.
func numbered(args []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(args))
	for i, v := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}
