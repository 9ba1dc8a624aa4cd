package optimistic

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Update writes all columns of row, and the next version, if the row in the table still has row's
// version; row then has the next. Otherwise nothing is changed, row neither, and the error is a
// *ConflictError, which has the current version whatever the isolation level, or ErrNotFound. A
// deadlock or a lock timeout is lease.ErrBusy. ext is a pool, a transaction or a connection, known
// by the method Conn, Rollback or Raw: one without them is refused with lease.ErrConfig.
//
// It is one statement, and one more to read what was in the way. Through a pool a ROLLBACK comes
// before it, because the application may have left a transaction open, in which the update would
// be lost (pgx discards such a connection). On MySQL and MariaDB a COMMIT or another ROLLBACK
// follows, because the session may be without autocommit. The version always changes, so that
// drivers that count changed rows and those that count matched rows agree. In a transaction the
// update counts when that commits; after any error roll it back. Without one, an error that comes
// when the statement may have reached the database, as of a lost connection or a ctx that ended,
// is lease.ErrUnknown: the row may have been changed. Read it again; Retry does not try again. If
// a replica hangs, the change can be read and still be lost in a failover, until a later update
// has succeeded.
func (t *Table[T]) Update(ctx context.Context, ext Ext, row *T) error {
	if isnil.Value(ext) || row == nil {
		return fmt.Errorf("%w: update %s: needs a database or transaction, and a row", lease.ErrConfig, t.name)
	}
	if err := isnil.Context("update", ctx); err != nil {
		return err
	}
	v := reflect.ValueOf(row).Elem()
	read := t.versionOf(v)
	if read < 0 || read >= t.limit {
		return t.exhausted(v, read, nil)
	}
	if err := ctx.Err(); err != nil {
		return t.explain("update", err) // certainly not sent
	}
	err := t.updateOn(ctx, ext, v, read)
	if err == nil {
		t.setVersion(v, read+1)
	}
	return err
}

// updateOn sends the statement on what database/sql does not send it on again by itself.
func (t *Table[T]) updateOn(ctx context.Context, ext Ext, v reflect.Value, read int64) error {
	if pool, ok := poolOf(ext); ok { // *sql.DB
		at, err := t.on(ctx, ext)
		if err != nil {
			return err
		}
		return at.updateBy(ctx, pool, v, read)
	}
	if isSession(ext) { // *sql.Tx and *sql.Conn
		return t.update(ctx, ext, v, read)
	}
	return fmt.Errorf("%w: update %s: %T may be a pool, which runs a statement again if its reply was "+
		"lost, and does the change twice: pass the *sql.DB, *sql.Tx or *sql.Conn in it, or give the type "+
		"the method Conn of the first or Rollback of the second", lease.ErrConfig, t.name, ext)
}

// updateBy updates on one connection of the pool. Through the pool itself, database/sql would send
// the statement again, without an error, if a driver calls the connection bad. Some drivers do so
// if only the reply was lost (golang/go#11978). The second statement would then meet the first as a
// conflict, and the caller would do it all again.
//
// updateBy sends it again too, because most often the connection had only been idle for too long,
// and the version lets only one of them through. But if the second fails, the outcome of the first
// is unknown.
func (t *Table[T]) updateBy(ctx context.Context, pool dialect.Pool, v reflect.Value, read int64) error {
	var lost error
	idle := 0
	if p, ok := pool.(dialect.DB); ok {
		idle = p.Stats().Idle
	}
	for ; ; idle-- {
		err := t.updateOnce(ctx, pool, v, read)
		if idle < 0 || !errors.Is(err, driver.ErrBadConn) {
			if lost != nil && err != nil {
				err = fmt.Errorf("%w; sent again: %v", lost, err) // no conflict, so that no caller tries again
			}
			return err
		}
		if errors.Is(err, lease.ErrUnknown) {
			lost = err
		}
	}
}

func (t *Table[T]) updateOnce(ctx context.Context, pool dialect.Pool, v reflect.Value, read int64) error {
	lent, err := pool.Conn(ctx)
	if err != nil {
		return t.explain("connect to update", err)
	}
	defer lent.Close() // even if a Valuer of the caller's panics
	if err := t.d.Abandon(ctx, lent); err != nil {
		discard(lent)
		return t.explain("connect to update", err)
	}
	err = t.update(ctx, lent, v, read)
	if t.d.CountsOnly { // MySQL's session may be without autocommit
		err = t.ended(ctx, lent, err)
	}
	return err
}

// discard keeps the pool from lending a connection again.
func discard(lent *sql.Conn) { _ = lent.Raw(func(any) error { return driver.ErrBadConn }) }

// ended ends the transaction of an update that returned err: an application that gets the
// connection would otherwise keep the row locked, or commit what was told as an error.
func (t *Table[T]) ended(ctx context.Context, lent *sql.Conn, err error) error {
	end := "COMMIT"
	if err != nil {
		end = "ROLLBACK"
	}
	_, failed := lent.ExecContext(ctx, end)
	if failed != nil {
		discard(lent)
	}
	if err == nil {
		err = t.committed(failed)
	}
	return err
}

// update sends the statement once.
func (t *Table[T]) update(ctx context.Context, ext Ext, v reflect.Value, read int64) error {
	query, args := t.updating(v, read)
	res, err := ext.ExecContext(ctx, query, args...)
	if err != nil {
		return t.failed(ext, v, read, err)
	}
	n, err := res.RowsAffected()
	switch {
	case err != nil || n < 0 || n > 1:
		return fmt.Errorf("%w: update %s %s: %d rows (%v): roll back; is the key unique, and does a "+
			"trigger write too?", ErrMiscount, t.name, keyText(t.keyOf(v)), n, err)
	case n == 0:
		return t.conflict(ctx, ext, v, read)
	case atEdge(read) && t.d.Clamps:
		return t.raised(ctx, ext, v, read)
	}
	return nil
}

// updating is the statement. The database computes the version, so that it cannot be written wrong.
func (t *Table[T]) updating(v reflect.Value, read int64) (query string, args []any) {
	var set []string
	for i, c := range t.columns {
		if i == t.version || slices.Contains(t.keys, i) {
			continue
		}
		set = append(set, c.quoted+" = ?")
		args = append(args, c.value(v))
	}
	version := t.columns[t.version].quoted
	set = append(set, version+" = "+version+" + 1")
	query = "UPDATE " + t.quoted + " SET " + strings.Join(set, ", ") + " WHERE " + t.whereKey() +
		" AND " + version + " = ?"
	return t.bind(query), append(append(args, t.keyOf(v)...), read)
}

// failed explains an error: a transaction has ended with it and changes nothing; a statement that
// commits by itself may have been committed.
func (t *Table[T]) failed(ext Ext, v reflect.Value, read int64, err error) error {
	_, inTx := ext.(interface{ Rollback() error })
	switch {
	case state(err) == "22003" && atEdge(read):
		return t.exhausted(v, read, err)
	case !inTx && t.isLost(err):
		return fmt.Errorf("%w: update %s %s from version %d: read it again to see whether it was done: %w",
			lease.ErrUnknown, t.name, keyText(t.keyOf(v)), read, err)
	}
	return t.refused(v, read, err)
}

// refused: at REPEATABLE READ and above a database may refuse to change a row that was changed
// since the transaction began, whatever the condition says.
func (t *Table[T]) refused(v reflect.Value, read int64, err error) error {
	if t.d.Overtaken(err) {
		return &ConflictError{Table: t.name, Key: t.keyOf(v), Expected: read, Found: -1, Err: err}
	}
	return t.explain("update", err)
}

// raised checks that the version has risen, if the column may have no room for the next. A server
// with a lax sql_mode then writes the last once more, and from there on every update would
// overwrite every other.
func (t *Table[T]) raised(ctx context.Context, ext Ext, v reflect.Value, read int64) error {
	if found, err := t.current(ctx, ext, t.keyOf(v)); err == nil && found == read {
		return t.exhausted(v, read, fmt.Errorf("it is still %d after the update: roll back", found))
	}
	return nil
}

// atEdge reports whether a version may be the last of some integer type: they end below a power of
// two.
func atEdge(version int64) bool { return version >= math.MaxInt8 && version&(version+1) == 0 }

func (t *Table[T]) exhausted(v reflect.Value, read int64, cause error) error {
	err := fmt.Errorf("%w: %s %s has version %d, and the next would be out of range; give the column "+
		"and the field a larger integer", ErrVersion, t.name, keyText(t.keyOf(v)), read)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// conflict reads what is in the way. The read takes a shared lock, because that shows the row as it
// is committed now; a plain read shows it as of the beginning of the transaction.
func (t *Table[T]) conflict(ctx context.Context, ext Ext, v reflect.Value, read int64) error {
	found, err := t.current(ctx, ext, t.keyOf(v))
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return t.missing([][]any{t.keyOf(v)})
	case errors.Is(err, ErrVersion):
		return err
	case err != nil:
		return t.refused(v, read, err)
	case found == read && atEdge(read) && t.d.Clamps:
		return t.exhausted(v, read, errors.New("the update left it as it was"))
	case found == read:
		return fmt.Errorf("%w: update %s %s: no row was changed, and it still has version %d: roll "+
			"back; does a trigger or a row policy keep it from being written?",
			ErrMiscount, t.name, keyText(t.keyOf(v)), read)
	}
	return &ConflictError{Table: t.name, Key: t.keyOf(v), Expected: read, Found: found}
}

func (t *Table[T]) current(ctx context.Context, ext Ext, key []any) (int64, error) {
	rows, err := ext.QueryContext(ctx, t.bind("SELECT "+t.columns[t.version].quoted+
		" FROM "+t.quoted+" WHERE "+t.whereKey()+t.d.ShareLock), key...)
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
	var found stored
	if err := rows.Scan(&found); err != nil {
		return 0, t.explain("read", err)
	}
	if !found.Valid {
		return 0, t.unversioned(key)
	}
	return found.V, rows.Close()
}

func (t *Table[T]) unversioned(key []any) error {
	c := t.columns[t.version].name
	return fmt.Errorf("%w: %s %s has none: UPDATE %s SET %s = 0 WHERE %s IS NULL, and make the column "+
		"NOT NULL", ErrVersion, t.name, keyText(key), t.name, c, c)
}

func (t *Table[T]) missing(keys [][]any) error {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = keyText(k)
	}
	return fmt.Errorf("%w: %s %s", ErrNotFound, t.name, strings.Join(names, ", "))
}
