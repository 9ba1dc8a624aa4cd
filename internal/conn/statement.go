package conn

import (
	"context"
	"database/sql"
	"database/sql/driver"
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
	err := s.Ask(ctx, query, s.values(args), nil)
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
	return s.Ask(ctx, query, s.values(args), scan)
}

// QueryRow runs a prepared statement and scans its first row, or returns sql.ErrNoRows.
func (s *Session) QueryRow(ctx context.Context, query string, args []any, dest ...any) error {
	return s.Ask(ctx, query, s.values(args), nil, dest...)
}

// job is the statement that a session is running. It is a part of the session, and so are its
// functions, so that none must be allocated.
type job struct {
	ctx    context.Context
	query  string
	args   []Arg
	scan   func(Columns) error // nil: the statement returns no rows
	dest   []any               // of first; nil once it has been filled
	result driver.Result
	loose  line

	first        func(Columns) error // is scanFirst
	plain, wired func(any) error     // are runPlain and runWired
}

func (j *job) scanFirst(r Columns) error {
	if j.dest == nil {
		return nil
	}
	dest := j.dest
	j.dest = nil
	return r.Scan(dest...)
}

// values returns parameters for run.
func (s *Session) values(args []any) []Arg {
	s.job.args = s.job.args[:0]
	for _, a := range args {
		if t, ok := a.(lease.Token); ok {
			a = int64(t) // as drivers and wires take it
		}
		s.job.args = append(s.job.args, Arg{Value: a})
	}
	return s.job.args
}

// Ask runs a statement, with parameters that need no allocation, on the driver's connection. It
// calls scan for each row, or scans the first row into dest, or else returns sql.ErrNoRows. An
// error of preparing it is marked as NotSent. database/sql discards the connection if the error is
// driver.ErrBadConn.
func (s *Session) Ask(
	ctx context.Context, query string, args []Arg, scan func(Columns) error, dest ...any,
) error {
	j := &s.job
	j.ctx, j.query, j.args, j.result = ctx, query, append(j.args[:0], args...), nil
	j.scan, j.dest = scan, dest
	if dest != nil {
		j.scan = j.first
	}
	if s.Sent != nil {
		s.Sent.Add(1)
	}
	var err error
	switch {
	case s.Wire != nil:
		err = s.conn.Raw(j.wired)
	case s.Guard.Within != "" && !s.open:
		err = s.InTx(ctx, func() error { return s.conn.Raw(j.plain) })
	default:
		err = s.conn.Raw(j.plain)
	}
	if err == nil && s.Relays {
		err = s.acknowledged(ctx)
	}
	if err == nil && j.dest != nil {
		err = sql.ErrNoRows
	}
	j.ctx = nil
	clear(j.args)
	return err
}

// runPlain runs the session's job on a driver of database/sql.
func (s *Session) runPlain(c any) (err error) {
	j := &s.job
	j.loose = line{}
	var rows driver.Rows
	row := &j.loose // its statement's own, if it has one
	if s.Unprepared {
		rows, err = s.sendText(c)
	} else {
		st, failed := s.prepared(j.ctx, c, j.query)
		if failed != nil {
			return NotSent{failed}
		}
		row = &st.row
		if j.scan == nil {
			j.result, err = st.exec.ExecContext(j.ctx, named(j.args))
		} else {
			rows, err = st.query.QueryContext(j.ctx, named(j.args))
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

// sendText runs the session's job without preparing it.
func (s *Session) sendText(c any) (rows driver.Rows, err error) {
	j := &s.job
	execs, canExec := c.(driver.ExecerContext)
	queries, canQuery := c.(driver.QueryerContext)
	if !canExec || !canQuery {
		return nil, incapable(c)
	}
	query, err := s.unprepared(j.query)
	switch {
	case err != nil:
	case j.scan == nil:
		j.result, err = execs.ExecContext(j.ctx, query, named(j.args))
	default:
		rows, err = queries.QueryContext(j.ctx, query, named(j.args))
	}
	return rows, err
}

// named are parameters as a driver of database/sql takes them. They are never reused, because a
// driver that is slow to end may still read them.
func named(args []Arg) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: args[i].value()}
		switch v := all[i].Value.(type) {
		case int:
			all[i].Value = int64(v)
		case driver.Valuer:
			all[i].Value, _ = v.Value() // an array of ours, which always has one
		}
	}
	return all
}

// statement is a prepared statement, and room for a row of it, because a driver makes a list of
// names each time it is asked for the number of columns.
type statement struct {
	driver.Stmt
	plan    Plan   // of a wire, which needs nothing else here
	text    string // of a session that prepares none, which needs nothing else here
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

// prepared returns a statement of the session, which it prepares at its first use.
func (s *Session) prepared(ctx context.Context, c any, query string) (*statement, error) {
	if st, ok := s.stmts[query]; ok {
		return st, s.held(st.grants)
	}
	st := &statement{grants: grants(query)}
	if err := s.held(st.grants); err != nil {
		return nil, err
	}
	text, err := s.text(query)
	if err != nil {
		return nil, err
	}
	if s.Wire != nil {
		st.relaxes = relaxes(text)
		st.plan, err = s.Wire.Prepare(ctx, text)
	} else {
		err = st.prepare(ctx, c, text)
	}
	if err != nil {
		return nil, err
	}
	s.stmts[query] = st
	return st, nil
}

func (st *statement) prepare(ctx context.Context, c any, text string) (err error) {
	on, ok := c.(driver.ConnPrepareContext)
	if !ok {
		return incapable(c)
	}
	if st.Stmt, err = on.PrepareContext(ctx, text); err != nil {
		return err
	}
	var execs, queries bool
	st.exec, execs = st.Stmt.(driver.StmtExecContext)
	st.query, queries = st.Stmt.(driver.StmtQueryContext)
	if !execs || !queries {
		return oneline.Join(incapable(st.Stmt), st.Close())
	}
	return nil
}

// read reads all rows, because an error may follow the last one.
func (j *job) read(rows driver.Rows, row *line) (err error) {
	for {
		if err = rows.Next(row.values); err == io.EOF {
			return rows.Close()
		}
		if err == nil {
			for i, v := range row.values {
				row.cells[i] = CellOf(v)
			}
			err = j.scan(row.cells)
		}
		if err != nil {
			return oneline.Join(err, rows.Close())
		}
	}
}
