package optimistic

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"slices"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/ownrows"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Pool is the part of a pool that Modify needs: *sql.DB, *sql.Conn and *sqlx.DB have it.
type Pool interface {
	Ext
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Modify reads the rows with these keys in one statement, calls f on them, and writes those that f
// has changed in one transaction, in key order: all of them or none. If one is no longer as it was
// read, Modify begins anew, as Retry does. So f is called several times, with new rows each time,
// and must do nothing but change them. No transaction is open while f runs.
//
// Keys without a row are named in an ErrNotFound. f's error ends Modify and nothing is written,
// unless it is one after which Retry tries again. f must leave keys and versions alone, and change
// the rows that it gets instead of replacing them. If the connection is lost at the commit, the
// error is lease.ErrUnknown: all may have been written.
//
// Each changed row is a statement, because one statement for all would lock them in an order of the
// database's own.
func (t *Table[T]) Modify(
	ctx context.Context, db Pool, keys []any, f func(rows []*T) error, opts ...RetryOption,
) error {
	if isnil.Value(db) || f == nil {
		return fmt.Errorf("%w: modify %s: needs a database and a function", lease.ErrConfig, t.name)
	}
	return Retry(ctx, func(ctx context.Context) error {
		t, err := t.on(ctx, db)
		if err != nil {
			return err
		}
		rows, err := t.Select(ctx, db, keys)
		if err != nil {
			return err
		}
		changed, err := t.change(rows, f)
		if err != nil || len(changed) == 0 {
			return err
		}
		return t.write(ctx, db, changed)
	}, opts...)
}

// change calls f and returns the rows that it has changed, in key order.
func (t *Table[T]) change(rows []T, f func([]*T) error) ([]*T, error) {
	pointers, before := make([]*T, len(rows)), make([][]any, len(rows))
	for i := range rows {
		pointers[i] = &rows[i]
		before[i] = t.values(&rows[i])
	}
	given := slices.Clone(pointers)
	if err := f(given); err != nil {
		return nil, err
	}
	if err := t.isSame(pointers, given); err != nil {
		return nil, err
	}
	var changed []*T
	for i, p := range pointers {
		after, differs := t.values(p), false
		for c := range after {
			same := reflect.DeepEqual(before[i][c], after[c])
			if !same && (c == t.version || slices.Contains(t.keys, c)) {
				return nil, fmt.Errorf("%w: modify %s %s: the function changed %s, which is the key or "+
					"the version", lease.ErrConfig, t.name,
					keyText(t.keyOf(reflect.ValueOf(p).Elem())), t.columns[c].name)
			}
			differs = differs || !same
		}
		if differs {
			changed = append(changed, p)
		}
	}
	slices.SortFunc(changed, t.compare)
	return changed, nil
}

// isSame refuses a row that f has put in the place of another. f may sort the slice, but only the
// rows that were read are written.
func (t *Table[T]) isSame(read, given []*T) error {
	ours := make(map[*T]bool, len(read))
	for _, p := range read {
		ours[p] = true
	}
	for _, p := range given {
		if p != nil && !ours[p] {
			return fmt.Errorf("%w: modify %s %s: the function put another row in the place of one that "+
				"was read: write to *rows[i], not to rows[i]",
				lease.ErrConfig, t.name, keyText(t.keyOf(reflect.ValueOf(p).Elem())))
		}
	}
	return nil
}

// values are the columns as a driver would get them, copied from the row, because f may write into
// a []byte in place.
func (t *Table[T]) values(row *T) []any {
	v, out := reflect.ValueOf(row).Elem(), make([]any, len(t.columns))
	for i, c := range t.columns {
		value, err := driver.DefaultParameterConverter.ConvertValue(c.value(v))
		switch b, ok := value.([]byte); {
		case err != nil:
			out[i] = fmt.Sprintf("%#v", c.value(v)) // a driver's own type
		case ok:
			out[i] = bytes.Clone(b)
		default:
			out[i] = value
		}
	}
	return out
}

// compare orders rows by key, so that two overlapping batches lock them in the same order.
func (t *Table[T]) compare(a, b *T) int {
	for _, k := range t.keys {
		left, right := t.columns[k].value(reflect.ValueOf(a).Elem()), t.columns[k].value(reflect.ValueOf(b).Elem())
		x, y, c := reflect.ValueOf(left), reflect.ValueOf(right), 0
		switch {
		case x.CanInt():
			c = cmp.Compare(x.Int(), y.Int())
		case x.CanUint():
			c = cmp.Compare(x.Uint(), y.Uint())
		default:
			c = cmp.Compare(ownrows.Text(left), ownrows.Text(right))
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func (t *Table[T]) write(ctx context.Context, db Pool, rows []*T) error {
	tx, err := t.d.BeginTx(ctx, db.BeginTx, nil)
	if err != nil {
		return t.explain("begin a transaction on", err)
	}
	defer t.d.Rollback(ctx, tx) // after a COMMIT it only frees the connection
	for _, r := range rows {
		if err := t.Update(ctx, tx, r); err != nil {
			return err
		}
	}
	return t.committed(t.d.Commit(ctx, tx))
}

// committed explains a failed commit: one that was refused has changed nothing, and one that was
// not answered may have.
func (t *Table[T]) committed(err error) error {
	if err != nil && sqlstore.Judge(t.d, err).Class == sqlstore.Unknown {
		return fmt.Errorf("%w: commit to %s: %w", lease.ErrUnknown, t.name, err)
	}
	if err != nil {
		return t.explain("commit to", err)
	}
	return nil
}
