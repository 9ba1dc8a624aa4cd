package optimistic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/ownrows"
	"github.com/rowlockdb/rowlock/lease"
)

// Get reads the row with this key, a value for each key column. It locks nothing.
func (t *Table[T]) Get(ctx context.Context, ext Ext, key ...any) (row T, err error) {
	rows, err := t.Select(ctx, ext, []any{key})
	if err != nil {
		return row, err
	}
	return rows[0], nil
}

// Select reads the rows with these keys, in the order of keys, in one statement. A key is a value,
// or a []any with a value for each of several key columns. Keys without a row are named in an
// ErrNotFound. A key that stands twice is refused. Databases take some thousand keys at a time,
// SQLite 32,766.
//
// The database decides which row a key names: if it takes 'a' for 'A', either finds the row. A key
// that the row has in another spelling costs a statement of its own, if it is one of several.
func (t *Table[T]) Select(ctx context.Context, ext Ext, keys []any) ([]T, error) {
	if isnil.Value(ext) {
		return nil, fmt.Errorf("%w: select %s: needs a database or transaction", lease.ErrConfig, t.name)
	}
	if err := isnil.Context("select", ctx); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, nil
	}
	places, tuples, err := t.places(keys)
	if err != nil {
		return nil, err
	}
	t, err = t.on(ctx, ext)
	if err != nil {
		return nil, err
	}
	out, found, strange := make([]T, len(keys)), make([]bool, len(keys)), false
	err = t.query(ctx, ext, tuples, func(row T) error {
		at, ok := places[t.identityOf(&row)]
		if len(keys) == 1 {
			at, ok = 0, true
		}
		switch {
		case !ok:
			strange = true
		case found[at]:
			return fmt.Errorf("%w: %s has two rows with the key %s", lease.ErrTable, t.name, keyText(tuples[at]))
		default:
			out[at], found[at] = row, true
		}
		return nil
	})
	if err == nil && strange {
		err = t.respell(ctx, ext, tuples, out, found)
	}
	if err != nil {
		return nil, err
	}
	var missing [][]any
	for i, ok := range found {
		if !ok {
			missing = append(missing, tuples[i])
		}
	}
	if missing != nil {
		return nil, t.missing(missing)
	}
	return out, nil
}

// respell asks one by one for the keys that no row has as they are written, after a row came that
// has none of them: a CHAR comes back with spaces, and a collation may not tell 'A' from 'a'.
func (t *Table[T]) respell(ctx context.Context, ext Ext, keys [][]any, out []T, found []bool) error {
	taken := make(map[string]bool, len(keys))
	for i := range out {
		if found[i] {
			taken[t.identityOf(&out[i])] = true
		}
	}
	for i, key := range keys {
		if found[i] {
			continue
		}
		row, err := t.Get(ctx, ext, key...)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		id := t.identityOf(&row)
		if taken[id] {
			return fmt.Errorf("%w: %s: the key %s stands twice: it is another spelling of one that "+
				"stands before", lease.ErrConfig, t.name, keyText(key))
		}
		taken[id], out[i], found[i] = true, row, true
	}
	return nil
}

// places returns the position of each key.
func (t *Table[T]) places(keys []any) (places map[string]int, tuples [][]any, err error) {
	places, tuples = make(map[string]int, len(keys)), make([][]any, len(keys))
	for i, k := range keys {
		tuple, ok := k.([]any)
		if !ok {
			tuple = []any{k}
		}
		if len(tuple) != len(t.keys) {
			return nil, nil, fmt.Errorf("%w: %s: the key %s has %d values, and the table's %d columns",
				lease.ErrConfig, t.name, keyText(tuple), len(tuple), len(t.keys))
		}
		id := t.identity(tuple)
		if _, twice := places[id]; twice {
			return nil, nil, fmt.Errorf("%w: %s: the key %s stands twice", lease.ErrConfig, t.name, keyText(tuple))
		}
		places[id], tuples[i] = i, tuple
	}
	return places, tuples, nil
}

// identity is the same for an int and an int64 of the same value, as the driver sees them.
func (t *Table[T]) identity(key []any) string {
	var b strings.Builder
	for _, v := range key {
		fmt.Fprintf(&b, "%q,", ownrows.Text(v))
	}
	return b.String()
}

func (t *Table[T]) identityOf(row *T) string { return t.identity(t.keyOf(reflect.ValueOf(row).Elem())) }

// query reads rows by their keys.
func (t *Table[T]) query(ctx context.Context, ext Ext, keys [][]any, each func(T) error) error {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.quoted
	}
	args := make([]any, 0, len(keys)*len(t.keys))
	for _, k := range keys {
		args = append(args, k...)
	}
	where := strings.Repeat(" OR ("+t.whereKey()+")", len(keys))[len(" OR "):]
	if len(t.keys) == 1 {
		where = t.columns[t.keys[0]].quoted + " IN (?" + strings.Repeat(", ?", len(keys)-1) + ")"
	}
	rows, err := ext.QueryContext(ctx, t.bind("SELECT "+strings.Join(names, ", ")+
		" FROM "+t.quoted+" WHERE "+where), args...)
	if err != nil {
		return t.explain("select", err)
	}
	defer rows.Close()
	for rows.Next() {
		row, err := t.scan(rows)
		if err == nil {
			err = each(row)
		}
		if err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return t.explain("select", err)
	}
	return nil
}

// stored is a version as it stands in the table: NULL, or perhaps one that is too large.
type stored struct{ sql.Null[int64] }

// Scan returns an ErrVersion for a value that is no such integer.
func (s *stored) Scan(src any) error {
	if err := s.Null.Scan(src); err != nil {
		return fmt.Errorf("%w: %w", ErrVersion, err)
	}
	return nil
}

func (t *Table[T]) scan(rows *sql.Rows) (row T, err error) {
	v := reflect.ValueOf(&row).Elem()
	var version stored
	dest := make([]any, len(t.columns))
	for i, c := range t.columns {
		dest[i] = c.field(v).Addr().Interface()
	}
	dest[t.version] = &version
	if err := rows.Scan(dest...); err != nil {
		return row, t.explain("read", err)
	}
	if !version.Valid {
		return row, t.unversioned(t.keyOf(v))
	}
	if version.V < 0 || version.V > t.limit {
		return row, fmt.Errorf("%w: %s %s: version %d is out of the range of its field", ErrVersion,
			t.name, keyText(t.keyOf(v)), version.V)
	}
	t.setVersion(v, version.V)
	return row, nil
}
