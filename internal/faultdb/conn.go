package faultdb

import (
	"context"
	"database/sql/driver"
	"slices"
)

// conn is a real connection that can be cut. Like any driver.Conn it is used by one goroutine at a time: database/sql
// holds a lock around every call, so there is none here.
type conn struct {
	from  *connector
	id    int64
	inner driver.Conn
	dead  bool
	inTx  bool    // a transaction of database/sql is open
	open  []child // statements and rows the caller has not closed, oldest first
}

// child is what must be closed on the real driver before its connection is. SQLite keeps a connection alive, and its
// transaction with it, as long as one statement is open: a cut that left it would not roll back.
type child interface{ closeReal() error }

var (
	_ driver.Conn               = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
	_ driver.NamedValueChecker  = (*conn)(nil)
)

// Unwrap returns the driver's own connection, or nil after a cut: what it still runs is out of the
// caller's reach. In (*sql.Conn).Raw, [Real] does the assertion.
func (c *conn) Unwrap() any {
	if c.dead {
		return nil
	}
	return c.inner
}

// Real returns the driver's own connection behind the one (*sql.Conn).Raw hands out, wrapped or not.
func Real(driverConn any) any {
	for {
		wrapped, ok := driverConn.(interface{ Unwrap() any })
		if !ok {
			return driverConn
		}
		driverConn = wrapped.Unwrap()
	}
}

// op names an operation on this connection; perform numbers it.
func (c *conn) op(kind Kind, query string) Op {
	return Op{Kind: kind, Query: query, Conn: c.id}
}

// cut closes the connection under its user and everything open on it, the newest first: rows before their statement.
func (c *conn) cut() {
	if !c.dead {
		_ = c.shut()
	}
}

func (c *conn) shut() error {
	c.dead = true
	open := c.open
	c.open = nil
	for _, ch := range slices.Backward(open) {
		_ = ch.closeReal()
	}
	if c.inner == nil { // cut while it was being dialled
		return nil
	}
	return c.inner.Close()
}

// detach returns a connection that goes on where c is now cut.
func (c *conn) detach() *conn {
	alive := *c
	c.dead, c.open = true, nil
	return &alive
}

func (c *conn) opened(ch child) { c.open = append(c.open, ch) }

func (c *conn) closed(ch child) {
	if i := slices.Index(c.open, ch); i >= 0 {
		c.open = slices.Delete(c.open, i, i+1)
	}
}

// Close closes the real connection, unless a fault has.
func (c *conn) Close() error {
	if c.dead {
		return nil
	}
	return c.shut()
}

// Ping passes on to a driver that can ping, and succeeds for one that cannot, as database/sql would.
func (c *conn) Ping(ctx context.Context) error {
	pinger, ok := c.inner.(driver.Pinger)
	if !ok && !c.dead {
		return nil
	}
	_, err := perform(ctx, c, c.op(Ping, ""), func(ctx context.Context, _ site) (struct{}, error) {
		return struct{}{}, pinger.Ping(ctx)
	})
	return err
}

// Prepare is PrepareContext without a context.
func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

// PrepareContext prepares a statement.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.asDriver(), nil
}

func (c *conn) prepare(ctx context.Context, query string) (*stmt, error) {
	return perform(ctx, c, c.op(Prepare, query), func(ctx context.Context, at site) (*stmt, error) {
		inner, err := prepareReal(ctx, at.conn.inner, query)
		if err != nil {
			return nil, err
		}
		s := &stmt{conn: at.conn, inner: inner, query: query}
		at.conn.opened(s)
		return s, nil
	})
}

// Begin is BeginTx without a context or options.
func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

// BeginTx begins a transaction.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return perform(ctx, c, c.op(Begin, ""), func(ctx context.Context, at site) (driver.Tx, error) {
		inner, err := beginReal(ctx, at.conn.inner, opts)
		if err != nil {
			return nil, err
		}
		c.inTx = true
		return &tx{ctx: ctx, conn: at.conn, inner: inner}, nil
	})
}

// CheckNamedValue asks the driver, and leaves the argument to database/sql if the driver has no opinion.
func (c *conn) CheckNamedValue(nv *driver.NamedValue) error {
	if checker, ok := c.inner.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(nv)
	}
	return driver.ErrSkip
}
