package forupdate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Rows says which rows of your own are to be locked: those whose Key column has the values given. The column should be the primary key, or
// have a unique index: without one, MySQL locks every row that it reads on the way.
type Rows struct {
	// Table is its name, or "schema.name".
	Table string
	// Key is the column's name.
	Key string
}

// LockRows locks your own rows until tx ends, one after the other in an order that is the same for every caller, as Lock does. A row that is not there is a [*MissingError], with
// the others locked. Keys are compared as text with what the driver returns: give them as the column has them (numbers, strings, []byte).
func (l *Locker) LockRows(ctx context.Context, tx Tx, rows Rows, keys ...any) error {
	r, err := l.rowsRequest(tx, rows, keys)
	if err != nil {
		return err
	}
	got, err := l.lock(ctx, tx, r)
	if err == nil && l.wholeFile() {
		got, err = l.look(ctx, tx, r)
	}
	if err != nil {
		return err
	}
	return r.missing(rows.Table, got)
}

// TryLockRows is LockRows without waiting. Where a row is locked it returns a *lease.HeldError that names its key.
func (l *Locker) TryLockRows(ctx context.Context, tx Tx, rows Rows, keys ...any) error {
	r, err := l.rowsRequest(tx, rows, keys)
	if err != nil {
		return err
	}
	got, err := l.try(ctx, tx, r)
	if err != nil || len(got) == len(r.keys) {
		return err
	}
	there, err := l.look(ctx, tx, r)
	if err != nil {
		return err
	}
	if err := r.missing(rows.Table, there); err != nil {
		return err
	}
	for _, k := range r.keys {
		if !got[text(k)] && !l.wholeFile() {
			return &lease.HeldError{Key: text(k)}
		}
	}
	return nil
}

// look reads which rows are there, and locks none. It reads on the locker's own connection: in a SERIALIZABLE transaction of MySQL's every
// read locks, and waits. SQLite's transaction sees what it has written itself, and waits for nobody.
func (l *Locker) look(ctx context.Context, tx Tx, r request) (got map[string]bool, err error) {
	query := dialect.In(r.table, r.column, len(r.keys))
	if l.wholeFile() {
		got, err = l.query(ctx, tx, r, query)
		return got, dialect.ExplainOwn(l.d, r.what, err)
	}
	var seen map[string]bool
	err = l.rows.OnLane(ctx, r.what, "", func(ctx context.Context, s *dialect.Session) (err error) {
		seen, err = l.query(ctx, s.Conn(), r, query)
		return err
	})
	if err != nil {
		return nil, err // seen may still be written to
	}
	return seen, nil
}

// rowsRequest checks all that can be checked before anything is sent.
func (l *Locker) rowsRequest(tx Tx, rows Rows, keys []any) (r request, err error) {
	if err := checkTx(tx); err != nil {
		return r, err
	}
	table, err := dialect.Quote(l.d, rows.Table)
	if err != nil {
		return r, err
	}
	column, err := dialect.Quote(l.d, rows.Key)
	if err != nil {
		return r, err
	}
	var distinct []any
	seen := make(map[string]bool, len(keys))
	for _, k := range keys {
		if !seen[text(k)] {
			seen[text(k)] = true
			distinct = append(distinct, k)
		}
	}
	if len(distinct) == 0 {
		return r, fmt.Errorf("%w: no row of %s to lock", lease.ErrInvalidKey, rows.Table)
	}
	// The column is named with its table: alone, one that is not there would be a string to SQLite.
	slices.SortFunc(distinct, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	return request{what: fmt.Sprintf("lock rows of %s by %s", rows.Table, rows.Key), table: table, column: table + "." + column, keys: distinct}, nil
}

// missing is the error for those that did not come.
func (r request) missing(table string, got map[string]bool) error {
	if len(got) == len(r.keys) {
		return nil
	}
	e := &MissingError{Table: table}
	for _, k := range r.keys {
		if !got[text(k)] {
			e.Keys = append(e.Keys, k)
		}
	}
	return e
}
