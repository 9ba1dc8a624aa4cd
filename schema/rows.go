package schema

import (
	"database/sql"
	"database/sql/driver"
	"io"
)

// lentRows are the rows of a statement on a borrowed connection.
type lentRows struct {
	rows    *sql.Rows
	columns []string
}

// Columns returns their names.
func (r *lentRows) Columns() []string { return r.columns }

// Close ends the statement.
func (r *lentRows) Close() error { return r.rows.Close() }

// Next reads one row.
func (r *lentRows) Next(dest []driver.Value) error {
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	into := make([]any, len(dest))
	for i := range dest {
		into[i] = (*any)(&dest[i])
	}
	return r.rows.Scan(into...)
}
