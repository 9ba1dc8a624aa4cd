package tokenfence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// ErrMissing is returned by Pass if the key has no row and Rows.Create is not set.
var ErrMissing = errors.New("rowlock: no such row")

// Pass lets tx write under token, or returns lease.ErrFenced if a transaction with a higher token
// has passed for the same key and was committed. It writes token into the key's row, which then
// stays locked until tx ends. Call it first in every transaction that writes what the lock
// protects, before any read. A token passes any number of times.
//
// After an error roll tx back. A deadlock, a lock timeout, and under REPEATABLE READ or
// SERIALIZABLE a row that was changed since tx began, are lease.ErrBusy: begin again. A table that
// is not as Rows describes it is lease.ErrTable. A missing row is ErrMissing: then tx can go on and
// insert it with its token, if no holder ever deletes it.
//
// key is a value as the column has it, such as a number or a string. token is Lock.Token. tx is a
// transaction of the database with the table; Pass refuses a pool with lease.ErrConfig.
//
// On MySQL and MariaDB it is two statements, elsewhere one, and one more if it is refused. The user
// needs SELECT and UPDATE on the table, and INSERT for Rows.Create.
func (f *Fence) Pass(ctx context.Context, tx lease.Tx, key any, token int64) error {
	if err := lease.CheckTx(tx); err != nil {
		return fmt.Errorf("%w (tokenfence.Pass for %s)", err, f.at.Table)
	}
	return f.PassIn(ctx, lease.InTx(tx), key, token)
}

// PassIn is Pass for a transaction of another kind than database/sql's.
func (f *Fence) PassIn(ctx context.Context, tx lease.Runner, key any, token int64) error {
	if err := f.check(tx, key, token); err != nil {
		return err
	}
	args := []any{token, key, token}
	if f.at.Create {
		args = []any{key, token, token}
	}
	changed, err := tx.Exec(ctx, f.raise, args)
	switch {
	case err != nil:
		return f.explain(key, err)
	case changed > 1 && !f.at.Create:
		return f.several(key, changed)
	case changed == 1 && !f.d.Clamps:
		return nil
	}
	return f.judge(ctx, tx, key, token)
}

// judge reads what token the row has after the statement that raises it.
func (f *Fence) judge(ctx context.Context, tx lease.Runner, key any, token int64) error {
	var found sql.NullInt64
	var rows int64
	err := tx.QueryOne(ctx, f.seen, []any{key}, &found, &rows)
	switch {
	case err != nil:
		return f.explain(key, err)
	case rows > 1:
		return f.several(key, rows)
	case rows == 0:
		return fmt.Errorf("%w: %s has none with %s %s: insert it with its %s, or keep the tokens in a "+
			"table of their own and set Rows.Create",
			ErrMissing, f.at.Table, f.at.Key, text(key), f.at.Token)
	case !found.Valid:
		return fmt.Errorf("%w: %s of %s %s is NULL: set it to 0, and make the column NOT NULL",
			lease.ErrTable, f.at.Token, f.at.Table, text(key))
	case found.Int64 > token:
		return fmt.Errorf("%w: %s %s was written under token %d, and this transaction has %d: the "+
			"lock has had another holder since; roll back",
			lease.ErrFenced, f.at.Table, text(key), found.Int64, token)
	case found.Int64 == token && f.d.Clamps:
		return nil
	}
	return fmt.Errorf("%w: %s of %s %s is %d and was not raised to %d: make the column BIGINT, and "+
		"let no trigger or row policy keep it from being written; roll back",
		lease.ErrTable, f.at.Token, f.at.Table, text(key), found.Int64, token)
}

func (f *Fence) several(key any, rows int64) error {
	return fmt.Errorf("%w: %s has %d rows with %s %s: make it unique, and roll back",
		lease.ErrTable, f.at.Table, rows, f.at.Key, text(key))
}

func (f *Fence) check(tx lease.Runner, key any, token int64) error {
	switch {
	case tx == nil:
		return fmt.Errorf("%w: tokenfence.Pass for %s: the transaction is nil; begin one",
			lease.ErrConfig, f.at.Table)
	case sqlstore.Plain(key) == nil:
		return fmt.Errorf("%w: tokenfence.Pass for %s: the key is nil, and no row has it",
			lease.ErrConfig, f.at.Table)
	}
	return checkToken(token)
}

// checkToken refuses what no lock has: a forgotten token is 0, and one beyond the last would keep
// every holder out forever.
func checkToken(token int64) error {
	if token < 1 || token >= lease.MaxToken {
		return fmt.Errorf("%w: %d is no token of a lock: give Lock.Token", lease.ErrConfig, token)
	}
	return nil
}

func (f *Fence) explain(key any, err error) error {
	what := fmt.Sprintf("pass %s %s", f.at.Table, text(key))
	if f.d.Overtaken(err) {
		return fmt.Errorf("%w: %s: %w (roll back and try again)", lease.ErrBusy, what, err)
	}
	return sqlstore.ExplainOwn(f.d, what, err)
}

// text shows a key in messages.
func text(key any) string {
	switch sqlstore.Plain(key).(type) {
	case string, []byte:
		return fmt.Sprintf("%q", sqlstore.PlainText(key))
	}
	return sqlstore.PlainText(key)
}
