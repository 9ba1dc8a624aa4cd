package faultdb

import (
	"context"
	"database/sql/driver"
	"errors"
)

var (
	_ driver.ExecerContext  = (*conn)(nil)
	_ driver.QueryerContext = (*conn)(nil)
)

// ExecContext executes a statement that was not prepared. A driver that cannot is left to database/sql, which
// prepares it and comes back through the statement.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if _, ok := c.inner.(driver.ExecerContext); !ok {
		return nil, driver.ErrSkip
	}
	return perform(ctx, c, c.op(c.ends(query), query), func(ctx context.Context, at site) (driver.Result, error) {
		result, err := at.conn.inner.(driver.ExecerContext).ExecContext(ctx, query, args)
		if errors.Is(err, driver.ErrSkip) {
			return at.execPrepared(ctx, query, args)
		}
		return result, err
	})
}

// QueryContext executes a query that was not prepared.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if _, ok := c.inner.(driver.QueryerContext); !ok {
		return nil, driver.ErrSkip
	}
	return perform(ctx, c, c.op(Query, query), func(ctx context.Context, at site) (driver.Rows, error) {
		inner, err := at.conn.inner.(driver.QueryerContext).QueryContext(ctx, query, args)
		if errors.Is(err, driver.ErrSkip) {
			return at.queryPrepared(ctx, query, args)
		}
		return at.rows(inner, nil, err)
	})
}

// A driver may refuse only when it sees the call: go-sql-driver/mysql does when there are arguments and they are not
// to be interpolated. To pass ErrSkip on would have database/sql execute through a statement and so ask the injector
// a second time about one execution. The preparation is an operation of its own all the same, since it is one to the
// server; it comes after the Exec or Query it belongs to.

func (at site) execPrepared(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := at.conn.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Close() }()
	return execReal(ctx, s.inner, args)
}

func (at site) queryPrepared(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := at.conn.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	inner, err := queryReal(ctx, s.inner, args)
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	return at.rows(inner, s, nil)
}

// rows wraps the rows of a query, or reads them to the end if the server has to have finished. owner is the statement
// that lives as long as they do, if any.
func (at site) rows(inner driver.Rows, owner *stmt, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	r := &rows{conn: at.conn, inner: inner, columns: inner.Columns(), owner: owner}
	at.conn.opened(r)
	if at.toEnd {
		return readAll(r), nil
	}
	return r, nil
}
