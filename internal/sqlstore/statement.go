package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/lease"
)

// Statements run on the driver's own connection. Through database/sql each query would start a
// goroutine, to watch a context that the driver watches too, and allocate some twenty objects: a
// tenth of the time of the shortest statement.

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
	s.job.dest = dest
	if err := s.run(); err != nil {
		return err
	}
	if s.job.dest != nil {
		return sql.ErrNoRows
	}
	return nil
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
	loose     line
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
		if s.Wire != nil {
			j.err = s.runWired(c)
		} else {
			j.err = s.runOn(c)
		}
		if errors.Is(j.err, driver.ErrBadConn) {
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
	if s.Sent != nil {
		s.Sent.Add(1)
	}
	if err := s.conn.Raw(s.job.do); err != nil && s.job.err == nil {
		return err
	}
	err := s.job.err
	if err == nil && s.Relays {
		err = s.acknowledged(s.job.ctx)
	}
	s.job.err, s.job.ctx, s.job.args = nil, nil, nil
	clear(s.job.puts)
	return err
}

func (s *Session) runOn(c any) (err error) {
	j := &s.job
	var rows driver.Rows
	j.loose = line{}
	row := &j.loose // its statement's own, if it has one
	switch {
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
	if row.values == nil {
		n := len(rows.Columns())
		*row = line{make([]driver.Value, n), make(Columns, n)}
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
	row     line
}

// line is room for a row: as the driver has it, and as it is scanned.
type line struct {
	values []driver.Value
	cells  Columns
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
func (j *job) read(rows driver.Rows, row *line) (err error) {
	for {
		if err = rows.Next(row.values); err == io.EOF {
			return rows.Close()
		}
		if err == nil {
			for i, v := range row.values {
				row.cells[i] = cellOf(v)
			}
			err = j.scan(row.cells)
		}
		if err != nil {
			return oneline.Join(err, rows.Close())
		}
	}
}
