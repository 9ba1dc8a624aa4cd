package postgres

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

// reply is what the server has answered to a request. It keeps its memory from one to the next.
type reply struct {
	bytes []byte
	cells []cell
	ends  []end // of each execution
	row   row
}

// cell is where a value of a row is in the bytes; a NULL is before them.
type cell struct{ from, to int }

// end is where the cells of an execution end.
type end struct {
	plan  *plan
	cells int
	rows  int64
}

func (r *reply) reset() {
	r.cells, r.ends, r.bytes = r.cells[:0], r.ends[:0], r.bytes[:0]
	if cap(r.bytes) > mostKept {
		r.bytes, r.cells = nil, nil
	}
}

// keep reads an answer to its end.
func (r *reply) keep(p *plan, from *pgconn.ResultReader) error {
	for from.NextRow() {
		for _, v := range from.Values() {
			at := len(r.bytes)
			r.bytes = append(r.bytes, v...)
			if v == nil {
				at = -1
			}
			r.cells = append(r.cells, cell{at, len(r.bytes)})
		}
	}
	tag, err := from.Close()
	if err == nil {
		r.ends = append(r.ends, end{p, len(r.cells), tag.RowsAffected()})
	}
	return err
}

// Read calls scan for each row of an execution.
func (w *wire) Read(n int, scan func(sqlstore.Columns) error) (int64, error) {
	r := &w.reply
	x := &r.ends[n]
	if scan == nil {
		return x.rows, nil
	}
	at := 0
	if n > 0 {
		at = r.ends[n-1].cells
	}
	for width := len(x.plan.results); at < x.cells; at += width {
		r.row = row{x.plan.description.Fields, r.cells[at : at+width], r.bytes}
		if err := scan(&r.row); err != nil {
			return 0, err
		}
	}
	return x.rows, nil
}

// row is one row of an answer.
type row struct {
	fields []pgconn.FieldDescription
	cells  []cell
	bytes  []byte
}

// Scan copies the columns; see sqlstore.ScanEach.
func (r *row) Scan(dest ...any) error {
	return sqlstore.ScanEach(dest, len(r.cells), func(i int, d any) error {
		var v []byte
		if c := r.cells[i]; c.from >= 0 {
			v = r.bytes[c.from:c.to:c.to]
		}
		return assign(d, r.fields[i].DataTypeOID, v)
	})
}

// isBinary says which types are read in the binary format. The others are text, as they are for
// database/sql.
func isBinary(oid uint32) bool {
	switch oid {
	case pgtype.ByteaOID, pgtype.Int8OID, pgtype.Int4OID, pgtype.Int2OID, pgtype.BoolOID:
		return true
	}
	return false
}

func assign(dest any, oid uint32, v []byte) (err error) {
	switch d := dest.(type) {
	case *int64:
		*d, err = integer(oid, v)
	case *int:
		var n int64
		n, err = integer(oid, v)
		*d = int(n)
	case *bool:
		*d, err = truth(oid, v)
	case *string:
		v, err = text(oid, v)
		*d = string(v)
	case *[]byte:
		if v, err = text(oid, v); v != nil {
			v = append([]byte{}, v...)
		}
		*d = v
	case *sql.RawBytes:
		*d, err = text(oid, v)
	default:
		err = fmt.Errorf("no way to scan into %T", dest)
	}
	return err
}

func integer(oid uint32, v []byte) (int64, error) {
	switch {
	case v == nil:
		return 0, errors.New("NULL is no integer")
	case oid == pgtype.Int8OID && len(v) == 8:
		return int64(binary.BigEndian.Uint64(v)), nil
	case oid == pgtype.Int4OID && len(v) == 4:
		return int64(int32(binary.BigEndian.Uint32(v))), nil
	case oid == pgtype.Int2OID && len(v) == 2:
		return int64(int16(binary.BigEndian.Uint16(v))), nil
	case isBinary(oid):
		return 0, fmt.Errorf("%d bytes of type %d are no integer", len(v), oid)
	}
	return sqlstore.Digits(string(v))
}

func truth(oid uint32, v []byte) (bool, error) {
	if oid == pgtype.BoolOID && len(v) == 1 {
		return v[0] != 0, nil
	}
	n, err := integer(oid, v)
	return n != 0, err
}

// text returns nil for NULL. Numbers are read as numbers alone.
func text(oid uint32, v []byte) ([]byte, error) {
	if v != nil && isBinary(oid) && oid != pgtype.ByteaOID {
		return nil, fmt.Errorf("type %d is no text", oid)
	}
	return v, nil
}
