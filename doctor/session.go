package doctor

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"fmt"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

//go:embed *.sql *.tables
var files embed.FS

// examiner is one examination.
type examiner struct {
	pool dialect.DB
	d    *sqlstore.Dialect
	text sqlstore.Sections
	lost error // why the schema of the tables was not found
	o    Options
	now  func() time.Time

	conn *sql.Conn
	gone error // why there is no connection
	serverInfo
}

// serverInfo is what several checks need to know of the server.
type serverInfo struct {
	product string
	version string // as the server writes it
	mariaDB bool
	user    string // as a GRANT names it
	all     []setting
}

// leave discards the connection, because it may have settings that are not the pool's.
func (x *examiner) leave() {
	if x.conn == nil {
		return
	}
	_ = x.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = x.conn.Close()
	x.conn = nil
}

// session returns a connection of the pool.
func (x *examiner) session(ctx context.Context) (*sql.Conn, error) {
	if x.conn != nil {
		return x.conn, nil
	}
	conn, err := x.pool.Conn(ctx)
	if err != nil {
		x.gone = fmt.Errorf("%w: doctor: the database gives no connection within %s: %w",
			lease.ErrUnknown, x.o.Limit, err)
		return nil, x.gone
	}
	err = x.d.Abandon(ctx, conn)       // in what the application has left open, statements fail
	if err == nil && x.d.Plain != "" { // what is cut short would be reported as missing
		_, err = conn.ExecContext(ctx, x.d.Plain)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	x.conn = conn
	return conn, nil
}

// look connects, and reads what several checks need.
func (x *examiner) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, x.o.Limit)
	defer cancel()
	x.locate(ctx)
	rows, err := x.rows(ctx, "server")
	if err == nil && len(rows) == 1 {
		x.version, x.user = rows[0][0], rows[0][1]
		x.mariaDB = strings.Contains(x.version, "MariaDB")
		x.product = x.productName()
		x.all, err = x.readSettings(ctx)
	}
	switch {
	case x.gone != nil:
		return x.gone
	case err != nil && strings.Contains(err.Error(), "57014"):
		return fmt.Errorf("rowlock: doctor: the statement_timeout of this role, database or DSN leaves no time "+
			"to read the settings: ALTER ROLE … SET statement_timeout = '5s', or as long in the DSN: %w", err)
	case err != nil:
		return fmt.Errorf("rowlock: doctor: the database does not answer as %s does: %w", x.d.Name(), err)
	}
	return nil
}

// locate has every statement name the schema of the tables, as Open has it. Without one it goes on,
// and finds no tables. It comes before the examination has a connection, because a pool may have
// only one.
func (x *examiner) locate(ctx context.Context) {
	located, err := x.d.Located(ctx, x.pool)
	if err != nil {
		x.lost = err
		return
	}
	text, _ := files.ReadFile(x.d.Name() + ".sql")
	x.d, x.text = located, located.Parse(string(text))
}

func (x *examiner) productName() string {
	switch {
	case x.mariaDB:
		return "MariaDB " + x.version
	case x.d.Name() == "mysql":
		return "MySQL " + x.version
	case x.d.Name() == "postgres":
		name, _, _ := strings.Cut(x.version, " on ")
		return name
	}
	return x.version
}

// rows runs a section as it is and returns its rows as texts. NULL is "". A database without the
// section has none.
func (x *examiner) rows(ctx context.Context, name string, args ...any) ([][]string, error) {
	conn, err := x.session(ctx)
	if err != nil {
		return nil, err
	}
	query := x.text[name]
	if query == "" {
		return nil, nil
	}
	// The statement_timeout of a role may be so short that it ends this one too, now and then.
	all, err := texts(ctx, conn, query, args...)
	for tries := 5; tries > 0 && err != nil && strings.Contains(err.Error(), "57014"); tries-- {
		all, err = texts(ctx, conn, query, args...)
	}
	return all, err
}

func texts(ctx context.Context, conn *sql.Conn, query string, args ...any) (all [][]string, err error) {
	found, err := conn.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	for found.Next() {
		cells := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range cells {
			dest[i] = &cells[i]
		}
		if err := found.Scan(dest...); err != nil {
			return nil, err
		}
		row := make([]string, len(columns))
		for i, c := range cells {
			row[i] = c.String
		}
		all = append(all, row)
	}
	return all, found.Err()
}

// bounded are the statements with which a database ends a statement itself, and refuses to write.
// Without the first, a server goes on with what its client has given up.
func (x *examiner) bounded() (begin []string, end string) {
	ms := x.o.Limit.Milliseconds()
	switch {
	case x.d.Name() == "postgres":
		return []string{fmt.Sprintf(`BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; SET LOCAL
			idle_in_transaction_session_timeout = %d; SET LOCAL statement_timeout = %[1]d`, ms)}, `ROLLBACK`
	case x.mariaDB:
		return []string{
			fmt.Sprintf(`SET SESSION max_statement_time = %f`, x.o.Limit.Seconds()),
			`SET TRANSACTION ISOLATION LEVEL READ COMMITTED`, `START TRANSACTION READ ONLY`,
		}, `ROLLBACK`
	case x.d.Name() == "mysql":
		return []string{
			fmt.Sprintf(`SET SESSION max_execution_time = %d`, ms),
			`SET TRANSACTION ISOLATION LEVEL READ COMMITTED`, `START TRANSACTION READ ONLY`,
		}, `ROLLBACK`
	}
	return nil, ""
}

// reading returns what f reads, in a transaction that only reads. If f fails, the caller's check
// does, and the session is discarded.
func reading[T any](ctx context.Context, x *examiner, f func(*sql.Conn) (T, error)) (got T, err error) {
	conn, err := x.session(ctx)
	if err != nil {
		return got, err
	}
	begin, end := x.bounded()
	for _, statement := range begin {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return got, err
		}
	}
	got, err = f(conn)
	if err == nil && end != "" {
		_, err = conn.ExecContext(ctx, end)
	}
	return got, err
}

// scan is rows of a section of package doctor, in a transaction that only reads.
func (x *examiner) scan(ctx context.Context, name string, args ...any) (all [][]string, err error) {
	query := x.text[name]
	if query == "" {
		return nil, nil
	}
	return x.scanText(ctx, query, args...)
}

func (x *examiner) scanText(ctx context.Context, query string, args ...any) ([][]string, error) {
	return reading(ctx, x, func(conn *sql.Conn) ([][]string, error) {
		return texts(ctx, conn, query, args...)
	})
}
