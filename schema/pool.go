package schema

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/oneline"
)

// DB is what Migrate needs of a pool: *sql.DB and *sqlx.DB have it.
type DB = dialect.Pool

// asDB returns db as the *sql.DB that goose asks for, and what closes it. Another pool is wrapped:
// its connections are borrowed one by one. So is one whose connections are to be dropped
// afterwards.
func asDB(db DB, drops bool) (*sql.DB, func() error) {
	if plain, ok := db.(*sql.DB); ok && !drops {
		return plain, func() error { return nil }
	}
	borrowed := sql.OpenDB(lender{db})
	return borrowed, borrowed.Close
}

// lender makes connections of those of another pool.
type lender struct{ db DB }

// Connect borrows a connection.
func (l lender) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &loan{conn: conn}, nil
}

// Driver has no names to open.
func (l lender) Driver() driver.Driver { return noDriver{} }

type noDriver struct{}

func (noDriver) Open(string) (driver.Conn, error) { return nil, errNotLent }

var errNotLent = errors.New("rowlock: a migration sends its statements by themselves")

// loan is a connection of another pool. A migration begins and ends its transactions by statements.
type loan struct {
	conn *sql.Conn
	bad  bool
}

// ExecContext runs a statement on the borrowed connection.
func (l *loan) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (
	driver.Result, error,
) {
	result, err := l.conn.ExecContext(ctx, query, values(args)...)
	return result, l.note(err)
}

// QueryContext returns the rows as the database's driver has them.
func (l *loan) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (
	driver.Rows, error,
) {
	rows, err := l.conn.QueryContext(ctx, query, values(args)...)
	if err != nil {
		return nil, l.note(err)
	}
	columns, err := rows.Columns()
	if err != nil {
		return nil, oneline.Join(err, rows.Close())
	}
	return &lentRows{rows, columns}, nil
}

func values(args []driver.NamedValue) []any {
	out := make([]any, len(args))
	for i, a := range args {
		out[i] = a.Value
	}
	return out
}

// note remembers that the connection must be discarded.
func (l *loan) note(err error) error {
	l.bad = l.bad || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone)
	return err
}

// Close gives the connection back, unless it may be inside of a transaction: then it is dropped.
func (l *loan) Close() error {
	if l.bad {
		_ = l.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	return l.conn.Close()
}

// discard drops a connection that is half-way through a transaction.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(c any) error {
		if l, ok := c.(*loan); ok {
			l.bad = true
		}
		return driver.ErrBadConn
	})
}

// drop has a borrowed connection dropped when it is closed: its settings are not the application's.
func drop(conn *sql.Conn) {
	_ = conn.Raw(func(c any) error {
		if l, ok := c.(*loan); ok {
			l.bad = true
		}
		return nil
	})
}

// Prepare is not used.
func (l *loan) Prepare(query string) (driver.Stmt, error) {
	return nil, fmt.Errorf("%w: %s", errNotLent, query)
}

// Begin is not used.
func (l *loan) Begin() (driver.Tx, error) { return nil, errNotLent }
