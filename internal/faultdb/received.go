package faultdb

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"io"
	"reflect"
)

// received is a reply that has been read to its end and is replayed from memory. A server need not have finished when
// a driver returns rows: SQLite commits an INSERT … RETURNING with the step after its last row. A reply that is held
// back or lost has to have been read whole before.
type received struct {
	sets []resultSet // the current one first
	row  int         // of sets[0], the next to be returned
	err  error       // what went wrong with any of it, for Close to report
}

// resultSet is one table of a reply.
type resultSet struct {
	missed  error // why the driver could not go on to it
	columns []string
	types   []columnType
	rows    [][]driver.Value
	end     error // io.EOF, or what the driver reported in place of a row
}

// columnType is all a driver says about a column.
type columnType struct {
	scan             reflect.Type
	name             string
	length           int64
	hasLength        bool
	nullable         bool
	hasNullable      bool
	precision, scale int64
	hasPrecision     bool
}

var (
	_ driver.RowsNextResultSet              = (*received)(nil)
	_ driver.RowsColumnTypeScanType         = (*received)(nil)
	_ driver.RowsColumnTypeDatabaseTypeName = (*received)(nil)
	_ driver.RowsColumnTypeLength           = (*received)(nil)
	_ driver.RowsColumnTypeNullable         = (*received)(nil)
	_ driver.RowsColumnTypePrecisionScale   = (*received)(nil)
)

// readAll reads and closes r. Its errors are kept for the reader: each in the place where it came up, and for Close,
// since the reader of a QueryRow goes no further than the first row and learns there that SQLite could not commit.
func readAll(r *rows) *received {
	reply := &received{sets: []resultSet{readSet(r)}}
	for reply.last().end == io.EOF && r.HasNextResultSet() {
		if err := r.NextResultSet(); err != nil {
			reply.sets = append(reply.sets, resultSet{missed: err, end: err})
			break
		}
		reply.sets = append(reply.sets, readSet(r))
	}
	reply.err = r.Close()
	if end := reply.last().end; end != io.EOF {
		reply.err = cmp.Or(reply.err, end)
	}
	return reply
}

func (r *received) last() *resultSet { return &r.sets[len(r.sets)-1] }

func readSet(r *rows) resultSet {
	set := resultSet{columns: r.Columns()}
	for i := range set.columns {
		set.types = append(set.types, typeOf(r, i))
	}
	for {
		row := make([]driver.Value, len(set.columns))
		if set.end = r.Next(row); set.end != nil {
			return set
		}
		set.rows = append(set.rows, ownBytes(row))
	}
}

// ownBytes copies the byte slices of row, whose buffers the driver may use again.
func ownBytes(row []driver.Value) []driver.Value {
	for i, v := range row {
		if b, ok := v.([]byte); ok {
			row[i] = bytes.Clone(b)
		}
	}
	return row
}

func typeOf(r *rows, i int) columnType {
	t := columnType{scan: r.ColumnTypeScanType(i), name: r.ColumnTypeDatabaseTypeName(i)}
	t.length, t.hasLength = r.ColumnTypeLength(i)
	t.nullable, t.hasNullable = r.ColumnTypeNullable(i)
	t.precision, t.scale, t.hasPrecision = r.ColumnTypePrecisionScale(i)
	return t
}

// Columns returns the names of the current result set.
func (r *received) Columns() []string { return r.sets[0].columns }

// Close reports what went wrong with the reply, read or not.
func (r *received) Close() error { return r.err }

// Next replays a row.
func (r *received) Next(dest []driver.Value) error {
	set := &r.sets[0]
	if r.row == len(set.rows) {
		return set.end
	}
	copy(dest, set.rows[r.row])
	r.row++
	return nil
}

// HasNextResultSet reports whether there was another table.
func (r *received) HasNextResultSet() bool { return len(r.sets) > 1 }

// NextResultSet goes on to the next table.
func (r *received) NextResultSet() error {
	if !r.HasNextResultSet() {
		return io.EOF
	}
	r.sets, r.row = r.sets[1:], 0
	return r.sets[0].missed
}

// ColumnTypeScanType replays what the driver said.
func (r *received) ColumnTypeScanType(i int) reflect.Type { return r.sets[0].types[i].scan }

// ColumnTypeDatabaseTypeName replays what the driver said.
func (r *received) ColumnTypeDatabaseTypeName(i int) string { return r.sets[0].types[i].name }

// ColumnTypeLength replays what the driver said.
func (r *received) ColumnTypeLength(i int) (length int64, ok bool) {
	t := r.sets[0].types[i]
	return t.length, t.hasLength
}

// ColumnTypeNullable replays what the driver said.
func (r *received) ColumnTypeNullable(i int) (nullable, ok bool) {
	t := r.sets[0].types[i]
	return t.nullable, t.hasNullable
}

// ColumnTypePrecisionScale replays what the driver said.
func (r *received) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	t := r.sets[0].types[i]
	return t.precision, t.scale, t.hasPrecision
}
