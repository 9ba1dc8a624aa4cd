package sqlstore

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// FuzzScan takes what a driver may return for a column, and reads it as each kind of column. What
// is no such value is a corrupt row, which no other try can read either.
func FuzzScan(f *testing.F) {
	f.Add([]byte("12"), int64(1), 1.5)
	f.Add([]byte(""), int64(-1<<63), 1e300)
	f.Fuzz(func(t *testing.T, b []byte, n int64, x float64) {
		for _, v := range []driver.Value{nil, b, string(b), n, x, n == 0} {
			for _, dest := range []any{new(int64), new(int), new(bool), new(string), new([]byte), new(sql.RawBytes)} {
				row := conn.Columns{conn.CellOf(v)}
				if err := row.Scan(dest); err != nil && !errors.Is(err, lease.ErrCorrupt) {
					t.Errorf("%#v into %T: %v", v, dest, err)
				}
			}
			scanAll(t, v)
		}
	})
}

// scanAll reads a row of each section that has v in one column, after values that rowlock writes.
func scanAll(t *testing.T, v driver.Value) {
	owner := make([]byte, 16)
	scans := map[string]struct {
		good []driver.Value
		scan func(conn.Columns) error
	}{
		"rows": {
			[]driver.Value{int64(1), true, owner, int64(7), []byte("note"), int64(5)},
			func(c conn.Columns) error { _, _, err := ScanRow(c); return err },
		},
		"forced": {
			[]driver.Value{[]byte("k"), int64(1), owner, "me", "why", int64(0), owner, int64(7), "", int64(8)},
			func(c conn.Columns) error { _, err := scanForced(c); return err },
		},
		"trace": {
			[]driver.Value{int64(1), int64(2), []byte("k"), "granted", int64(7), owner, "", int64(8), ""},
			func(c conn.Columns) error { _, err := scanTrace(c); return err },
		},
		"places": {
			[]driver.Value{int64(1), int64(0), true, int64(7), []byte("note"), int64(5), int64(2)},
			func(c conn.Columns) error {
				var p place
				_, err := p.scan(c)
				if err == nil {
					err = p.place().Err
				}
				return err
			},
		},
		"answer": {
			[]driver.Value{int64(1), int64(7), []byte("note"), int64(5)},
			func(c conn.Columns) error {
				var a Answer
				if err := c.Scan(a.Dest()...); err != nil {
					return err
				}
				got, err := a.Acquired(nil)
				if got.Granted && got.Token <= 0 {
					t.Errorf("granted with %d", got.Token)
				}
				return err
			},
		},
	}
	known := []error{lease.ErrCorrupt, lease.ErrMoved, lease.ErrTokenExhausted, ErrRowLocked, ErrRowShape}
	for section, s := range scans {
		for i := range s.good {
			row := make(conn.Columns, len(s.good))
			for n, good := range s.good {
				row[n] = conn.CellOf(good)
			}
			row[i] = conn.CellOf(v)
			if err := s.scan(row); err != nil && !isOne(err, known) && !errors.As(err, new(FoundError)) {
				t.Errorf("%s: column %d is %#v: %v", section, i+1, v, err)
			}
		}
	}
}

func isOne(err error, of []error) bool {
	for _, one := range of {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
