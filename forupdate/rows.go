package forupdate

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/lease"
)

// Rows says which rows of your own are to be locked: those whose Key column has the values given. The column should be the primary key, or
// have a unique index: MySQL locks every row that it reads on the way, and deadlocks are only impossible where it reads them in order.
type Rows struct {
	// Table is its name, or "schema.name".
	Table string
	// Key is the column's name.
	Key string
}

// LockRows locks your own rows until tx ends, in the order of their keys, as Lock does. A row that is not there is a [*MissingError], with
// the others locked. Keys are compared as text with what the driver returns: give them as the column has them (numbers, strings, []byte).
func (l *Locker) LockRows(ctx context.Context, tx Tx, rows Rows, keys ...any) error {
	r, distinct, err := l.rowsRequest(tx, rows, keys)
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
	return r.missing(distinct, got)
}

// TryLockRows is LockRows without waiting. Where a row is locked it returns a *lease.HeldError that names its key.
func (l *Locker) TryLockRows(ctx context.Context, tx Tx, rows Rows, keys ...any) error {
	r, distinct, err := l.rowsRequest(tx, rows, keys)
	if err != nil {
		return err
	}
	got, err := l.try(ctx, tx, r)
	if err != nil || len(got) == len(distinct) {
		return err
	}
	there, err := l.look(ctx, tx, r)
	if err != nil {
		return err
	}
	if err := r.missing(distinct, there); err != nil {
		return err
	}
	for _, k := range distinct {
		if !got[text(k)] && !l.wholeFile() {
			return &lease.HeldError{Key: text(k)}
		}
	}
	return nil
}

// look reads which rows are there, and locks none.
func (l *Locker) look(ctx context.Context, tx Tx, r request) (map[string]bool, error) {
	got, err := l.query(ctx, tx, r, r.query)
	return got, dialect.ExplainOwn(l.d, r.what, err)
}

// rowsRequest checks all that can be checked before anything is sent.
func (l *Locker) rowsRequest(tx Tx, rows Rows, keys []any) (r request, distinct []any, err error) {
	if err := checkTx(tx); err != nil {
		return r, nil, err
	}
	table, err := dialect.Quote(l.d, rows.Table)
	if err != nil {
		return r, nil, err
	}
	column, err := dialect.Quote(l.d, rows.Key)
	if err != nil {
		return r, nil, err
	}
	seen := make(map[string]bool, len(keys))
	for _, k := range keys {
		if !seen[text(k)] {
			seen[text(k)] = true
			distinct = append(distinct, k)
		}
	}
	if len(distinct) == 0 {
		return r, nil, fmt.Errorf("%w: no row of %s to lock", lease.ErrInvalidKey, rows.Table)
	}
	r = request{what: fmt.Sprintf("lock rows of %s by %s", rows.Table, rows.Key), table: rows.Table, keys: distinct}
	r.query = fmt.Sprintf(`SELECT %s FROM %s WHERE %s IN (?) ORDER BY %s`, column, table, column, column)
	return r, distinct, nil
}

// missing is the error for those that did not come.
func (r request) missing(keys []any, got map[string]bool) error {
	if len(got) == len(keys) {
		return nil
	}
	e := &MissingError{Table: r.table}
	for _, k := range keys {
		if !got[text(k)] {
			e.Keys = append(e.Keys, k)
		}
	}
	return e
}
