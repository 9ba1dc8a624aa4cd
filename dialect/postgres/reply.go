package postgres

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/rowlockdb/rowlock/internal/conn"
)

// reply is what the server has answered to a request. It keeps its memory from one to the next.
type reply struct {
	bytes []byte
	cells []cell
	ends  []end        // of each execution
	row   conn.Columns // that is scanned
}

// cell is where a value of a row is in the bytes; a NULL is before them.
type cell struct{ from, to int }

// end is where the cells of an execution end.
type end struct {
	plan  *plan
	cells int
	rows  int64
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
func (w *wire) Read(n int, scan func(conn.Columns) error) (int64, error) {
	r := &w.reply
	x := &r.ends[n]
	if scan == nil {
		return x.rows, nil
	}
	at := 0
	if n > 0 {
		at = r.ends[n-1].cells
	}
	fields := x.plan.description.Fields
	for width := len(fields); at < x.cells; at += width {
		r.row = r.row[:0]
		for i, c := range r.cells[at : at+width] {
			var v []byte
			if c.from >= 0 {
				v = r.bytes[c.from:c.to:c.to]
			}
			r.row = append(r.row, cellOf(fields[i].DataTypeOID, v))
		}
		if err := scan(r.row); err != nil {
			return 0, err
		}
	}
	return x.rows, nil
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

// cellOf is a value as the server has sent it, nil for NULL.
func cellOf(oid uint32, v []byte) conn.Cell {
	c := conn.Cell{Kind: conn.CellInt}
	switch {
	case v == nil:
		c.Kind = conn.CellNull
	case oid == pgtype.Int8OID && len(v) == 8:
		c.Int = int64(binary.BigEndian.Uint64(v))
	case oid == pgtype.Int4OID && len(v) == 4:
		c.Int = int64(int32(binary.BigEndian.Uint32(v)))
	case oid == pgtype.Int2OID && len(v) == 2:
		c.Int = int64(int16(binary.BigEndian.Uint16(v)))
	case oid == pgtype.BoolOID && len(v) == 1:
		c.Int = int64(v[0])
	case isBinary(oid) && oid != pgtype.ByteaOID:
		c.Kind, c.Odd = conn.CellOdd, fmt.Sprintf("a value of %d bytes of type %d", len(v), oid)
	default:
		c.Kind, c.Bytes = conn.CellBytes, v
	}
	return c
}
