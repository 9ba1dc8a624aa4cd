package postgres

import (
	"database/sql/driver"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// rowsWithin are rows of pgx for database/sql.
type rowsWithin struct {
	types        *pgtype.Map
	rows         pgx.Rows
	peeked, more bool // Next was called already, and what it returned
}

func (r *rowsWithin) Columns() []string {
	fields := r.rows.FieldDescriptions()
	names := make([]string, len(fields))
	for n, f := range fields {
		names[n] = f.Name
	}
	return names
}

func (r *rowsWithin) Close() error {
	r.rows.Close()
	return r.rows.Err()
}

func (r *rowsWithin) Next(dest []driver.Value) error {
	if !r.peeked {
		r.more = r.rows.Next()
	}
	r.peeked = false
	if !r.more {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	fields := r.rows.FieldDescriptions()
	for n, raw := range r.rows.RawValues() {
		var err error
		if dest[n], err = r.value(fields[n], raw); err != nil {
			return err
		}
	}
	return nil
}

// value returns what pgx's own package stdlib returns for a column: a number, bool, []byte or time
// where the type has one, and the text of anything else.
func (r *rowsWithin) value(f pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	if raw == nil {
		return nil, nil
	}
	switch f.DataTypeOID {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		return scan[int64](r.types, f, raw)
	case pgtype.Float4OID, pgtype.Float8OID:
		return scan[float64](r.types, f, raw)
	case pgtype.BoolOID:
		return scan[bool](r.types, f, raw)
	case pgtype.ByteaOID, pgtype.JSONOID, pgtype.JSONBOID, pgtype.XMLOID:
		return scan[[]byte](r.types, f, raw)
	case pgtype.CIDOID, pgtype.OIDOID, pgtype.XIDOID:
		return valueOf[pgtype.Uint32](r.types, f, raw)
	case pgtype.DateOID:
		return valueOf[pgtype.Date](r.types, f, raw)
	case pgtype.TimestampOID:
		return valueOf[pgtype.Timestamp](r.types, f, raw)
	case pgtype.TimestamptzOID:
		return valueOf[pgtype.Timestamptz](r.types, f, raw)
	}
	return scan[string](r.types, f, raw)
}

func scan[T any](m *pgtype.Map, f pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	var v T
	err := m.Scan(f.DataTypeOID, f.Format, raw, &v)
	return v, err
}

// valueOf is scan for types that name values which Go's own lack, such as infinity.
func valueOf[T driver.Valuer](m *pgtype.Map, f pgconn.FieldDescription, raw []byte) (driver.Value, error) {
	var v T
	if err := m.Scan(f.DataTypeOID, f.Format, raw, &v); err != nil {
		return nil, err
	}
	return v.Value()
}
