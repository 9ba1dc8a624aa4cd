package optimistic

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// Update writes all columns of row, and the next version, if the row in the table still has row's version; row.version is then the
// next. Otherwise nothing is changed, row neither, and the error is a *ConflictError, which has the version that is current whatever
// the isolation level, or ErrNotFound.
//
// It is one statement, and one more to look for what was in the way. The version always changes, so a driver that counts changed rows
// and one that counts matched rows agree. In a transaction the update counts when that commits: after any error roll it back. Without
// one, an error that is none of ours after the statement was sent, as of a lost connection, leaves open whether it was done; database/sql
// may then have sent it twice, and the second time met the first as a conflict.
func (t *Table[T]) Update(ctx context.Context, ext Ext, row *T) error {
	if isNil(ext) || row == nil {
		return fmt.Errorf("%w: update %s: needs a database or transaction, and a row", lease.ErrConfig, t.name)
	}
	v := reflect.ValueOf(row).Elem()
	read := t.versionOf(v)
	if read < 0 || read >= t.limit {
		return fmt.Errorf("%w: %s %s has version %d, and the next would be out of its range; give the column and the field a larger integer", ErrVersion, t.name, keyText(t.keyOf(v)), read)
	}
	query, args := t.updating(v, read)
	res, err := ext.ExecContext(ctx, query, args...)
	if err != nil {
		return t.refused(v, read, err)
	}
	n, err := res.RowsAffected()
	switch {
	case err != nil || n < 0 || n > 1:
		return fmt.Errorf("%w: update %s %s: %d rows (%v): roll back; is the key unique, and does a trigger write too?", ErrMiscount, t.name, keyText(t.keyOf(v)), n, err)
	case n == 0:
		return t.conflict(ctx, ext, v, read)
	}
	t.setVersion(v, read+1)
	return nil
}

// updating is the statement. The version is counted in the database's own arithmetic, so that it cannot be written wrong.
func (t *Table[T]) updating(v reflect.Value, read int64) (query string, args []any) {
	var set []string
	for i, c := range t.columns {
		if i == t.version || t.isKey(i) {
			continue
		}
		set = append(set, c.quoted+" = ?")
		args = append(args, c.value(v))
	}
	version := t.columns[t.version].quoted
	set = append(set, version+" = "+version+" + 1")
	query = "UPDATE " + t.quoted + " SET " + strings.Join(set, ", ") + " WHERE " + t.whereKey() + " AND " + version + " = ?"
	return t.bind(query), append(append(args, t.keyOf(v)...), read)
}

func (t *Table[T]) isKey(column int) bool {
	for _, k := range t.keys {
		if k == column {
			return true
		}
	}
	return false
}

// refused: at REPEATABLE READ and above, Postgres refuses to change a row that was changed since the transaction began, whatever
// the condition says.
func (t *Table[T]) refused(v reflect.Value, read int64, err error) error {
	if state(err) == "40001" {
		return &ConflictError{Table: t.name, Key: t.keyOf(v), Expected: read, Found: -1, Err: err}
	}
	return t.explain("update", err)
}

// conflict looks what is in the way. The read takes a shared lock, because that shows the row as it is committed now, where a plain
// read shows it as of the beginning of the transaction.
func (t *Table[T]) conflict(ctx context.Context, ext Ext, v reflect.Value, read int64) error {
	found, err := t.current(ctx, ext, t.keyOf(v))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t.missing([][]any{t.keyOf(v)})
	case errors.Is(err, ErrVersion):
		return err
	case err != nil:
		return t.refused(v, read, err)
	case found == read:
		return fmt.Errorf("%w: update %s %s: no row was changed, and it still has version %d: roll back; does a trigger or a row policy keep it from being written?",
			ErrMiscount, t.name, keyText(t.keyOf(v)), read)
	}
	return &ConflictError{Table: t.name, Key: t.keyOf(v), Expected: read, Found: found}
}

func (t *Table[T]) current(ctx context.Context, ext Ext, key []any) (int64, error) {
	lock := map[string]string{"postgres": " FOR SHARE", "mysql": " LOCK IN SHARE MODE"}[t.d.Name()]
	rows, err := ext.QueryContext(ctx, t.bind("SELECT "+t.columns[t.version].quoted+" FROM "+t.quoted+" WHERE "+t.whereKey()+lock), key...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	if !rows.Next() {
		if err := rows.Err(); err != nil {
			return 0, err
		}
		return 0, sql.ErrNoRows
	}
	var found sql.Null[int64]
	if err := rows.Scan(&found); err != nil {
		return 0, err
	}
	if !found.Valid {
		return 0, t.unversioned(key)
	}
	return found.V, rows.Close()
}

func (t *Table[T]) unversioned(key []any) error {
	c := t.columns[t.version].name
	return fmt.Errorf("%w: %s %s has none: UPDATE %s SET %s = 0 WHERE %s IS NULL, and make the column NOT NULL", ErrVersion, t.name, keyText(key), t.name, c, c)
}

func (t *Table[T]) missing(keys [][]any) error {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = keyText(k)
	}
	return fmt.Errorf("%w: %s %s", ErrNotFound, t.name, strings.Join(names, ", "))
}
