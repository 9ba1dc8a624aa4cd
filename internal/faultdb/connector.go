package faultdb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"sync/atomic"
)

// connector dials through the real connector and wraps what it gets.
type connector struct {
	inner driver.Connector
	inj   Injector
	ops   atomic.Int64
	conns atomic.Int64
}

var (
	_ driver.Connector = (*connector)(nil)
	_ io.Closer        = (*connector)(nil)
)

// Wrap returns a connector whose connections are c's, with the faults inj asks for. Give it to sql.OpenDB. A nil
// injector asks for none.
func Wrap(c driver.Connector, inj Injector) driver.Connector {
	if inj == nil {
		inj = Always(None)
	}
	return &connector{inner: c, inj: inj}
}

// Open is sql.Open with faults. Like sql.Open it does not dial.
func Open(driverName, dsn string, inj Injector) (*sql.DB, error) {
	// Only a DB tells which driver a name is registered for.
	probe, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	d := probe.Driver()
	if err := probe.Close(); err != nil {
		return nil, err
	}
	inner, err := connectorOf(d, dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(Wrap(inner, inj)), nil
}

func connectorOf(d driver.Driver, dsn string) (driver.Connector, error) {
	if dc, ok := d.(driver.DriverContext); ok {
		return dc.OpenConnector(dsn)
	}
	return dsnConnector{driver: d, dsn: dsn}, nil
}

// Connect dials one connection.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	undialled := &conn{from: c, id: c.conns.Add(1)}
	dialled, err := perform(ctx, undialled, undialled.op(Connect, ""), func(ctx context.Context, at site) (*conn, error) {
		inner, err := c.inner.Connect(ctx)
		if err != nil {
			return nil, err
		}
		at.conn.inner = inner
		return at.conn, nil
	})
	if err != nil {
		return nil, err
	}
	return dialled.asDriver(), nil
}

// Driver returns the real driver: callers ask it which database they talk to.
func (c *connector) Driver() driver.Driver { return c.inner.Driver() }

// Close closes the real connector, if it is one to be closed.
func (c *connector) Close() error {
	if closer, ok := c.inner.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// dsnConnector serves the drivers that only know Open, as database/sql itself does.
type dsnConnector struct {
	driver driver.Driver
	dsn    string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c dsnConnector) Driver() driver.Driver                        { return c.driver }
