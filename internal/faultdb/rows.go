package faultdb

import (
	"database/sql/driver"
	"io"
	"reflect"
)

// rows are the rows of a query on a connection that may be cut while they are being read.
type rows struct {
	conn    *conn
	inner   driver.Rows
	columns []string // of the current result set
	owner   *stmt    // closed with the rows, if not nil
	done    bool
}

var (
	_ driver.RowsNextResultSet              = (*rows)(nil)
	_ driver.RowsColumnTypeScanType         = (*rows)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*rows)(nil)
	_ driver.RowsColumnTypeLength           = (*rows)(nil)
	_ driver.RowsColumnTypeNullable         = (*rows)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*rows)(nil)
)

// live returns the real rows, or nil after a cut: what SQLite says about rows of a closed connection is read from
// memory that has been given back. No assertion holds on nil, so a cut looks like a driver that does not say.
func (r *rows) live() driver.Rows {
	if r.conn.dead {
		return nil
	}
	return r.inner
}

// Columns returns the names of the current result set.
func (r *rows) Columns() []string { return r.columns }

// Next passes on, unless the connection is cut.
func (r *rows) Next(dest []driver.Value) error {
	if r.conn.dead {
		return driver.ErrBadConn
	}
	return r.inner.Next(dest)
}

// Close closes the real rows, unless the connection was cut and took them along.
func (r *rows) Close() error {
	if r.conn.dead || r.done {
		return nil
	}
	r.conn.closed(r)
	err := r.closeReal()
	if r.owner != nil {
		_ = r.owner.Close() // database/sql, too, does not report this one
	}
	return err
}

func (r *rows) closeReal() error {
	r.done = true
	return r.inner.Close()
}

// HasNextResultSet passes on; a driver without result sets has no next one.
func (r *rows) HasNextResultSet() bool {
	sets, ok := r.live().(driver.RowsNextResultSet)
	return ok && sets.HasNextResultSet()
}

// NextResultSet passes on; a driver without result sets has no next one.
func (r *rows) NextResultSet() error {
	if r.conn.dead {
		return driver.ErrBadConn
	}
	sets, ok := r.inner.(driver.RowsNextResultSet)
	if !ok {
		return io.EOF
	}
	err := sets.NextResultSet()
	if err == nil {
		r.columns = sets.Columns()
	}
	return err
}

// The column types are those of the real rows; what the driver does not say is what database/sql makes of its silence.

// ColumnTypeScanType passes on.
func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	if t, ok := r.live().(driver.RowsColumnTypeScanType); ok {
		return t.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName passes on.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	if t, ok := r.live().(driver.RowsColumnTypeDatabaseTypeName); ok {
		return t.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

// ColumnTypeLength passes on.
func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	if t, ok := r.live().(driver.RowsColumnTypeLength); ok {
		return t.ColumnTypeLength(i)
	}
	return 0, false
}

// ColumnTypeNullable passes on.
func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	if t, ok := r.live().(driver.RowsColumnTypeNullable); ok {
		return t.ColumnTypeNullable(i)
	}
	return false, false
}

// ColumnTypePrecisionScale passes on.
func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if t, ok := r.live().(driver.RowsColumnTypePrecisionScale); ok {
		return t.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}
