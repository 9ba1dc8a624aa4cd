package conn

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"

	"github.com/rowlockdb/rowlock/lease"
)

// Columns is a row that was read, whatever has read it.
type Columns []Cell

// Cell is a value of a row.
type Cell struct {
	Kind CellKind
	Int  int64 // of an integer; of a truth value, 0 or 1
	// Bytes are the text or the bytes. Scan copies them, because what has read them may use their
	// memory for the next row.
	Bytes []byte
	Odd   string // says what the value is, if it is of no kind that rowlock writes
}

// CellKind says which field of a Cell has the value.
type CellKind uint8

// The kinds of a Cell.
const (
	CellNull CellKind = iota
	CellInt
	CellBytes
	CellOdd
)

// Scan copies the columns to *int64, *lease.Token, *int, *bool, *string, *[]byte and *sql.RawBytes,
// all that can be: one whose value is not what rowlock writes becomes zero. Its error is then
// lease.ErrCorrupt, because another try, on another connection, reads the same. It is about this
// row alone: a caller that can say whose row it is answers for that row, and reads on.
func (r Columns) Scan(dest ...any) (bad error) {
	if len(dest) != len(r) {
		return fmt.Errorf("%d destinations for %d columns", len(dest), len(r))
	}
	for i, d := range dest {
		if err := r[i].assign(d); err != nil && bad == nil {
			bad = fmt.Errorf("%w: column %d: %w", lease.ErrCorrupt, i+1, err)
		}
	}
	return bad
}

func (c *Cell) assign(dest any) (err error) {
	switch d := dest.(type) {
	case *int64:
		*d, err = c.integer()
	case *lease.Token:
		return c.assign((*int64)(d))
	case *int:
		var n int64
		n, err = c.integer()
		*d = int(n)
	case *bool:
		var n int64
		n, err = c.integer()
		*d = n != 0
	case *string:
		var b []byte
		b, err = c.text()
		*d = string(b)
	case *[]byte:
		var b []byte
		if b, err = c.text(); b != nil {
			b = append([]byte{}, b...)
		}
		*d = b
	case *sql.RawBytes:
		*d, err = c.text()
	default:
		err = fmt.Errorf("no way to scan into %T", dest)
	}
	return err
}

// integer returns 0 with an error.
func (c *Cell) integer() (int64, error) {
	switch c.Kind {
	case CellInt:
		return c.Int, nil
	case CellBytes:
		n, err := strconv.ParseInt(string(c.Bytes), 10, 64)
		if err != nil {
			return 0, err // ParseInt returns the largest number for one that is larger
		}
		return n, nil
	case CellNull:
		return 0, errors.New("NULL is no integer")
	}
	return 0, fmt.Errorf("%s is no integer", c.Odd)
}

// text returns nil for NULL. Numbers are read as numbers alone.
func (c *Cell) text() ([]byte, error) {
	switch c.Kind {
	case CellNull:
		return nil, nil
	case CellBytes:
		return c.Bytes, nil
	case CellInt:
		return nil, fmt.Errorf("%d is no text", c.Int)
	}
	return nil, fmt.Errorf("%s is no text", c.Odd)
}

// CellOf returns a value as database/sql and its drivers have it.
func CellOf(v driver.Value) Cell {
	switch v := v.(type) {
	case nil:
		return Cell{}
	case int64:
		return Cell{Kind: CellInt, Int: v}
	case bool:
		if v {
			return Cell{Kind: CellInt, Int: 1}
		}
		return Cell{Kind: CellInt}
	case []byte:
		return Cell{Kind: CellBytes, Bytes: v}
	case string:
		return Cell{Kind: CellBytes, Bytes: []byte(v)}
	}
	return Cell{Kind: CellOdd, Odd: fmt.Sprintf("%T", v)}
}

// ScanSQL is Columns.Scan of a row of database/sql.
func ScanSQL(rows *sql.Rows, dest ...any) (bad error) {
	values, cells := make([]any, len(dest)), make(Columns, len(dest))
	into := make([]any, len(dest))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		return err
	}
	for i, v := range values {
		cells[i] = CellOf(v)
	}
	return cells.Scan(dest...)
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
