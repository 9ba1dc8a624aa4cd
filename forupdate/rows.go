package forupdate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/ownrows"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Rows says which of your own rows to lock: those whose Key column has the given values. The column
// should be the primary key, or have a unique index. Without one, MySQL locks every row that it
// reads, and TryLockRows locks only one of several rows with one key.
type Rows struct {
	// Table is its name, or "schema.name". Names are compared exactly: on PostgreSQL a name that
	// was created without quotes is in lower case. A name without a schema is found as the
	// transaction's own session finds it.
	Table string
	// Key is the column's name.
	Key string
}

// LockRows locks your own rows until tx ends, one after the other in an order that is the same for
// every caller, as Lock does. Missing rows are a [*MissingError], with the others locked. The
// database decides whether a row has a key, for example by the column's collation. Give keys as the
// column has them (numbers, strings, []byte), and every caller alike, because on MySQL their text
// is the order.
func (l *Locker) LockRows(ctx context.Context, tx Tx, rows Rows, keys ...any) error {
	r, err := l.rowsRequest(ctx, tx, rows, keys)
	if err != nil {
		return err
	}
	missing, err := absent(r.keys, func(keys []any) (map[string]bool, error) { return l.lock(ctx, tx, r.of(keys)) })
	if err != nil || len(missing) == 0 {
		return err
	}
	return &MissingError{Table: rows.Table, Keys: missing}
}

// TryLockRows is LockRows without waiting. If a row is locked it returns a *lease.HeldError that
// names its key; on MySQL also if tx itself has deleted the row.
func (l *Locker) TryLockRows(ctx context.Context, tx Tx, rows Rows, keys ...any) error {
	r, err := l.rowsRequest(ctx, tx, rows, keys)
	if err != nil {
		return err
	}
	left, err := absent(r.keys, func(keys []any) (map[string]bool, error) { return l.try(ctx, tx, r.of(keys)) })
	if err != nil || len(left) == 0 {
		return err
	}
	missing, err := absent(left, func(keys []any) (map[string]bool, error) { return l.look(ctx, tx, r.of(keys)) })
	switch {
	case err != nil:
		return err
	case len(missing) > 0:
		return &MissingError{Table: rows.Table, Keys: missing}
	}
	return &lease.HeldError{Key: ownrows.Text(left[0])}
}

// absent returns the keys for which ask finds no row. Rows are told apart by their text. If those
// that have no row by that have one by the database (two texts are equal in a collation, or a type
// is written in several ways), it is asked for each key by itself.
func absent(keys []any, ask func(keys []any) (map[string]bool, error)) (missing []any, err error) {
	got, err := ask(keys)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if !got[ownrows.Text(k)] {
			missing = append(missing, k)
		}
	}
	if len(got) == 0 || len(missing) == 0 {
		return missing, nil
	}
	if got, err = ask(missing); err != nil || len(got) == 0 {
		return missing, err
	}
	found := func(k any) bool {
		var one map[string]bool
		if err == nil {
			one, err = ask([]any{k})
		}
		return len(one) > 0
	}
	missing = slices.DeleteFunc(missing, found)
	return missing, err
}

// look reads which rows exist, and locks none. On MySQL it reads on the Locker's own connection,
// because every read of a SERIALIZABLE transaction locks, and waits. Elsewhere it reads in the
// transaction, which sees its own writes.
func (l *Locker) look(ctx context.Context, tx Tx, r request) (map[string]bool, error) {
	if l.d.ReadsLock {
		r, err := l.asSeenIn(ctx, tx, r)
		if err != nil {
			return nil, err
		}
		return l.lookOutside(ctx, r)
	}
	got, err := l.query(ctx, tx, r.keys, sqlstore.In(r.table, r.column, len(r.keys)))
	return got, ownrows.Explain(l.d, r.what, err)
}

// asSeenIn names the database in which the transaction finds the table: it need not be that of the
// Locker's connection.
func (l *Locker) asSeenIn(ctx context.Context, tx Tx, r request) (request, error) {
	if strings.Contains(r.table, ".") {
		return r, nil
	}
	var database string
	if err := lease.InTx(tx).QueryOne(ctx, `SELECT DATABASE()`, nil, &database); err != nil {
		return r, ownrows.Explain(l.d, r.what, err)
	}
	in := "`" + strings.ReplaceAll(database, "`", "``") + "`."
	r.table, r.column = in+r.table, in+r.column
	return r, nil
}

func (l *Locker) lookOutside(ctx context.Context, r request) (map[string]bool, error) {
	var seen map[string]bool
	err := l.rows.OnPinned(ctx, r.what, "", func(ctx context.Context, s *conn.Session) (err error) {
		seen, err = l.query(ctx, s.Conn(), r.keys, sqlstore.In(r.table, r.column, len(r.keys)))
		return err
	})
	if err != nil {
		return nil, err // seen may still be written to
	}
	return seen, nil
}

// of is the same request for some of its keys.
func (r request) of(keys []any) request {
	r.keys = keys
	return r
}

// rowsRequest checks all that can be checked before anything is sent.
func (l *Locker) rowsRequest(ctx context.Context, tx Tx, rows Rows, keys []any) (r request, err error) {
	if err := checkCall(ctx, tx); err != nil {
		return r, err
	}
	table, err := l.d.Quote(rows.Table)
	if err != nil {
		return r, err
	}
	column, err := l.d.Quote(rows.Key)
	if err != nil {
		return r, err
	}
	byText := func(a, b any) int { return strings.Compare(ownrows.Text(a), ownrows.Text(b)) }
	distinct := slices.SortedStableFunc(slices.Values(keys), byText)
	distinct = slices.CompactFunc(distinct, func(a, b any) bool { return byText(a, b) == 0 })
	if len(distinct) == 0 {
		return r, fmt.Errorf("%w: no row of %s to lock", lease.ErrInvalidKey, rows.Table)
	}
	// The column is named with its table, because SQLite takes an unknown column alone for a string.
	what := fmt.Sprintf("lock rows of %s by %s", rows.Table, rows.Key)
	return request{what: what, table: table, column: table + "." + column, keys: distinct}, nil
}
