package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Statements run on the driver's own connection. Through database/sql each query would start a
// goroutine, to watch a context that the driver watches too, and allocate some twenty objects: a
// tenth of the time of the shortest statement.

// Columns is a row that was read; see (*sql.Rows).Scan. Destinations are *int64, *int, *bool,
// *string, *[]byte and *sql.RawBytes.
type Columns interface {
	Scan(dest ...any) error
}

// Exec runs a prepared statement.
func (s *Session) Exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s.job.set(ctx, query, args, nil)
	err := s.run()
	return s.job.result, err
}

// Change runs a prepared statement and returns how many rows the driver has counted.
func (s *Session) Change(ctx context.Context, query string, args ...any) (rows int64, err error) {
	res, err := s.Exec(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Query runs a prepared statement and calls scan for each row.
func (s *Session) Query(
	ctx context.Context, query string, args []any, scan func(Columns) error,
) error {
	s.job.set(ctx, query, args, scan)
	return s.run()
}

// QueryRow runs a prepared statement and scans its first row, or returns sql.ErrNoRows.
func (s *Session) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	s.job.set(ctx, query, args, s.job.scanFirst)
	return s.first(dest)
}

// job is the statement that a session is running. It is a part of the session, and so is its
// function, so that neither must be allocated.
type job struct {
	ctx    context.Context
	query  string
	args   []driver.NamedValue
	puts   []Arg               // in the place of args, for a wire
	scan   func(Columns) error // nil: the statement returns no rows
	dest   []any               // of scanFirst; nil once it has been filled
	result driver.Result
	err    error

	session   *Session
	do        func(any) error
	scanFirst func(Columns) error
	loose     values
}

func (j *job) begin(ctx context.Context, query string, scan func(Columns) error) {
	j.ctx, j.query, j.scan, j.result = ctx, query, scan, nil
}

func (j *job) set(ctx context.Context, query string, args []any, scan func(Columns) error) {
	j.begin(ctx, query, scan)
	if j.session.Wire != nil {
		j.puts = j.puts[:0]
		for _, a := range args {
			j.puts = append(j.puts, Arg{Value: a})
		}
		return
	}
	// Never reused, because a driver that is slow to end may still read it.
	j.args = make([]driver.NamedValue, len(args))
	for i, a := range args {
		j.args[i] = driver.NamedValue{Ordinal: i + 1, Value: a}
		if n, ok := a.(int); ok {
			j.args[i].Value = int64(n)
		}
	}
}

// on makes the job's functions.
func (j *job) on(s *Session) func(any) error {
	j.scanFirst = func(r Columns) error {
		if j.dest == nil {
			return nil
		}
		dest := j.dest
		j.dest = nil
		return r.Scan(dest...)
	}
	return func(c any) error {
		if j.err = s.runOn(c); errors.Is(j.err, driver.ErrBadConn) {
			// database/sql must know that the connection must be discarded.
			return driver.ErrBadConn
		}
		return nil
	}
}

// run runs the job. It marks an error of preparing the statement as NotSent.
func (s *Session) run() error {
	if s.Guard.Within != "" && !s.open && s.Wire == nil {
		return s.InTx(s.job.ctx, s.run)
	}
	s.count()
	if err := s.conn.Raw(s.job.do); err != nil && s.job.err == nil {
		return err
	}
	err := s.job.err
	if err == nil {
		err = s.acknowledged(s.job.ctx)
	}
	s.job.err, s.job.ctx, s.job.args = nil, nil, nil
	clear(s.job.puts)
	return err
}

func (s *Session) runOn(c any) (err error) {
	j := &s.job
	var rows driver.Rows
	j.loose = nil
	row := &j.loose // its statement's own, if it has one
	switch {
	case s.Wire != nil:
		return s.runWired(c)
	case s.Unprepared && j.scan == nil:
		on, ok := c.(driver.ExecerContext)
		if !ok {
			return incapable(c)
		}
		query, failed := s.unprepared()
		if failed != nil {
			return failed
		}
		j.result, err = on.ExecContext(j.ctx, query, j.args)
	case s.Unprepared:
		on, ok := c.(driver.QueryerContext)
		if !ok {
			return incapable(c)
		}
		query, failed := s.unprepared()
		if failed != nil {
			return failed
		}
		rows, err = on.QueryContext(j.ctx, query, j.args)
	default:
		st, failed := s.prepared(c)
		if failed != nil {
			return NotSent{failed}
		}
		row = &st.row
		if j.scan == nil {
			j.result, err = st.exec.ExecContext(j.ctx, j.args)
		} else {
			rows, err = st.query.QueryContext(j.ctx, j.args)
		}
	}
	if err != nil || rows == nil {
		return err
	}
	if *row == nil {
		*row = make(values, len(rows.Columns()))
	}
	return j.read(rows, row)
}

// statement is a prepared statement, and room for a row of it, because a driver makes a list of
// names each time it is asked for the number of columns.
type statement struct {
	driver.Stmt
	plan    Plan // of a wire, which needs nothing else here
	grants  bool
	relaxes bool // for Pipe
	exec    driver.StmtExecContext
	query   driver.StmtQueryContext
	row     values
}

// incapable is the error of a driver, or of a wrapper around one, that takes no contexts. Nothing
// was sent.
func incapable(c any) error {
	return NotSent{fmt.Errorf(
		"%w: the pool's driver has a %T, which takes no context: wrap the driver in nothing that "+
			"leaves this out", lease.ErrUnsupported, c)}
}

func (s *Session) prepared(c any) (*statement, error) {
	if st, ok := s.stmts[s.job.query]; ok {
		return st, s.held(st.grants)
	}
	grants := grants(s.job.query)
	if err := s.held(grants); err != nil {
		return nil, err
	}
	query, err := s.text(s.job.query)
	if err != nil {
		return nil, err
	}
	if s.Wire != nil {
		return s.planned(c, query, grants)
	}
	on, ok := c.(driver.ConnPrepareContext)
	if !ok {
		return nil, incapable(c)
	}
	prepared, err := on.PrepareContext(s.job.ctx, query)
	if err != nil {
		return nil, err
	}
	st := &statement{Stmt: prepared, grants: grants}
	var execs, queries bool
	st.exec, execs = prepared.(driver.StmtExecContext)
	st.query, queries = prepared.(driver.StmtQueryContext)
	if !execs || !queries {
		return nil, oneline.Join(incapable(prepared), prepared.Close())
	}
	s.stmts[s.job.query] = st
	return st, nil
}

func (s *Session) planned(c any, query string, grants bool) (*statement, error) {
	plan, err := s.Wire.Prepare(s.job.ctx, c, query)
	if err != nil {
		return nil, err
	}
	st := &statement{plan: plan, grants: grants, relaxes: relaxes(query)}
	s.stmts[s.job.query] = st
	return st, nil
}

// read reads all rows, because an error may follow the last one.
func (j *job) read(rows driver.Rows, row *values) (err error) {
	for {
		if err = rows.Next(*row); err == io.EOF {
			return rows.Close()
		}
		if err == nil {
			err = j.scan(row)
		}
		if err != nil {
			return oneline.Join(err, rows.Close())
		}
	}
}

// values are the columns of a row, as the driver has them.
type values []driver.Value

// Scan copies the columns, because the driver may use their memory for the next row. See ScanEach.
func (v *values) Scan(dest ...any) error {
	return ScanEach(dest, len(*v), func(i int, d any) error { return assign(d, (*v)[i]) })
}

// ScanEach assigns the columns of a row, all that can be: one whose value is not what rowlock
// writes becomes zero. Its error is then lease.ErrCorrupt, because another try, on another
// connection, reads the same. It is about this row alone: a caller that can say whose row it is
// answers for that row, and reads on.
func ScanEach(dest []any, columns int, assign func(i int, d any) error) (bad error) {
	if len(dest) != columns {
		return fmt.Errorf("%d destinations for %d columns", len(dest), columns)
	}
	for i, d := range dest {
		if err := assign(i, d); err != nil && bad == nil {
			bad = fmt.Errorf("%w: column %d: %w", lease.ErrCorrupt, i+1, err)
		}
	}
	return bad
}

// ScanSQL is ScanEach of a row of database/sql.
func ScanSQL(rows *sql.Rows, dest ...any) (bad error) {
	cells := make([]any, len(dest))
	into := make([]any, len(dest))
	for i := range cells {
		into[i] = &cells[i]
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	return ScanEach(dest, len(cells), func(i int, d any) error { return assign(d, cells[i]) })
}

// IsBad reports whether err is about the values of the row that was scanned, and not about the
// statement.
func IsBad(err error) bool { return errors.Is(err, lease.ErrCorrupt) }

// UnlessBad is err for a scan that passes over bad rows.
func UnlessBad(err error) error {
	if IsBad(err) {
		return nil
	}
	return err
}

func assign(dest any, v driver.Value) (err error) {
	switch d := dest.(type) {
	case *int64:
		*d, err = integer(v)
	case *int:
		var n int64
		n, err = integer(v)
		*d = int(n)
	case *bool:
		*d, err = truth(v)
	case *string:
		var b []byte
		b, err = raw(v)
		*d = string(b)
	case *[]byte:
		var b []byte
		if b, err = raw(v); b != nil {
			b = append([]byte{}, b...)
		}
		*d = b
	case *sql.RawBytes:
		*d, err = raw(v)
	default:
		err = fmt.Errorf("no way to scan into %T", dest)
	}
	return err
}

func integer(v driver.Value) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case []byte:
		return Digits(string(v))
	case string:
		return Digits(v)
	}
	return 0, fmt.Errorf("%T is no integer", v)
}

// Digits returns the number that a text is, and 0 for a text that is none.
func Digits(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, err // ParseInt returns the largest number for one that is larger
	}
	return n, nil
}

func truth(v driver.Value) (bool, error) {
	if b, ok := v.(bool); ok {
		return b, nil
	}
	n, err := integer(v)
	return n != 0, err
}

// raw returns nil for NULL.
func raw(v driver.Value) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case []byte:
		return v, nil
	case string:
		return []byte(v), nil
	}
	return nil, fmt.Errorf("%T is no text", v)
}
