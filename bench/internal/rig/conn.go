package rig

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlockdb/rowlock/internal/conn"
)

// Conn is a connection by hand: the driver's own, with the session settings of a pinned connection.
// It stays pinned, and nobody uses the pool's face of it any more but to close it.
type Conn struct{ pinned *sql.Conn }

// Dial takes a connection out of the pool.
func Dial(ctx context.Context, d *Database) (*Conn, error) {
	pinned, err := d.Pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	c := &Conn{pinned}
	if err := d.Dialect.Setup(ctx, conn.NewSession(pinned)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Raw calls f with the driver's connection.
func (c *Conn) Raw(f func(c any) error) error { return c.pinned.Raw(f) }

// Close ends the connection. It is not to go back to the pool: it has a pinned connection's
// settings.
func (c *Conn) Close() {
	_ = c.pinned.Raw(func(c any) error { return c.(io.Closer).Close() })
	_ = c.pinned.Close()
}

// Unwatched is the context of whatever is sent by hand: drivers watch one that can end from another goroutine, for which a
// floor does not pay.
var Unwatched = context.Background()

// ErrNotOne says that a statement did not change exactly one row.
var ErrNotOne = errors.New("not one row was changed")

// Stmt is a prepared statement that changes one row.
type Stmt interface {
	// Exec runs it. An error wraps ErrNotOne if there was no such row.
	Exec(args ...any) error
}

// Prepare prepares query on c, which must be what Raw gives, under a name that is its own there.
func Prepare(ctx context.Context, c any, name, query string) (Stmt, error) {
	if pg, ok := c.(*stdlib.Conn); ok {
		_, err := pg.Conn().Prepare(ctx, name, query)
		return stmtPostgres{pg.Conn(), name}, err
	}
	s, err := c.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt{s.(driver.StmtExecContext)}, nil
}

type stmtPostgres struct {
	conn *pgx.Conn
	name string
}

func (s stmtPostgres) Exec(args ...any) error {
	tag, err := s.conn.Exec(Unwatched, s.name, args...)
	if err == nil && tag.RowsAffected() != 1 {
		return ErrNotOne
	}
	return err
}

type stmt struct{ driver.StmtExecContext }

func (s stmt) Exec(args ...any) error {
	res, err := s.ExecContext(Unwatched, Args(args...))
	if err != nil {
		return err
	}
	return One(res)
}

// One returns ErrNotOne unless one row was changed.
func One(res driver.Result) error {
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(ErrNotOne, err)
	}
	return nil
}

// Args numbers arguments as drivers want them.
func Args(values ...any) []driver.NamedValue {
	named := make([]driver.NamedValue, len(values))
	for i, v := range values {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}
