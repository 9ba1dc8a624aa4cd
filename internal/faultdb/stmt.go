package faultdb

import (
	"context"
	"database/sql/driver"
)

// stmt is a prepared statement whose executions can fail.
type stmt struct {
	conn  *conn
	inner driver.Stmt
	query string
	done  bool
}

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// asDriver returns the statement, with a ColumnConverter if the real one has it: database/sql converts differently
// where there is one, even one that does nothing.
func (s *stmt) asDriver() driver.Stmt {
	if converter, ok := s.inner.(oldConverter); ok {
		return convertingStmt{s, converter}
	}
	return s
}

type convertingStmt struct {
	*stmt
	converter oldConverter
}

// ColumnConverter passes on.
func (s convertingStmt) ColumnConverter(i int) driver.ValueConverter {
	return s.converter.ColumnConverter(i)
}

// CheckNamedValue asks the statement, then its connection, in database/sql's own order.
func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	if checker, ok := s.inner.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(nv)
	}
	return s.conn.CheckNamedValue(nv)
}

// NumInput passes on. Of a statement whose connection was cut it does not know, and database/sql goes on to find out.
func (s *stmt) NumInput() int {
	if s.conn.dead {
		return -1
	}
	return s.inner.NumInput()
}

// Close closes the real statement, unless the connection was cut and took it along.
func (s *stmt) Close() error {
	if s.conn.dead || s.done {
		return nil
	}
	s.conn.closed(s)
	return s.closeReal()
}

func (s *stmt) closeReal() error {
	s.done = true
	return s.inner.Close()
}

// Exec is ExecContext without a context.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), numbered(args))
}

// Query is QueryContext without a context.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), numbered(args))
}

// ExecContext executes the statement.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return perform(ctx, s.conn, s.op(Exec), func(ctx context.Context, _ site) (driver.Result, error) {
		return execReal(ctx, s.inner, args)
	})
}

// QueryContext executes the statement and returns its rows.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return perform(ctx, s.conn, s.op(Query), func(ctx context.Context, at site) (driver.Rows, error) {
		inner, err := queryReal(ctx, s.inner, args)
		return at.rows(inner, nil, err)
	})
}

func (s *stmt) op(kind Kind) Op {
	op := s.conn.op(kind, s.query)
	op.Prepared = true
	return op
}
