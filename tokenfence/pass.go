package tokenfence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/ownrows"
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
// The token's column must be one of integers. In any other, two tokens can be equal, or "9" above
// "10", so that an older token would pass: that is lease.ErrTable, from the first Pass on.
//
// On PostgreSQL it is one statement, and one more if it is refused, elsewhere two. The user
// needs SELECT and UPDATE on the table, and INSERT for Rows.Create.
func (f *Fence) Pass(ctx context.Context, tx lease.Tx, key any, token lease.Token) error {
	if err := lease.CheckTx(tx); err != nil {
		return fmt.Errorf("%w (tokenfence.Pass for %s)", err, f.at.Table)
	}
	return f.PassIn(ctx, lease.InTx(tx), key, token)
}

// PassIn is Pass for a transaction of another kind than database/sql's.
func (f *Fence) PassIn(ctx context.Context, tx lease.Runner, key any, token lease.Token) error {
	if err := cmp.Or(isnil.Context("tokenfence.Pass", ctx), f.check(tx, key, token)); err != nil {
		return err
	}
	n := int64(token)
	args := []any{n, key, n}
	if f.at.Create {
		args = []any{key, n, n}
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
func (f *Fence) judge(ctx context.Context, tx lease.Runner, key any, token lease.Token) error {
	var found any // a column that is no integer scans into nothing else
	var rows int64
	var exact bool
	err := tx.QueryOne(ctx, f.seen, []any{key}, &found, &rows, &exact)
	switch {
	case err != nil:
		return f.explain(key, err)
	case rows > 1:
		return f.several(key, rows)
	case rows == 0 && exact:
		return fmt.Errorf("%w: %s has none with %s %s: insert it with its %s, or keep the tokens in a "+
			"table of their own and set Rows.Create",
			ErrMissing, f.at.Table, f.at.Key, text(key), f.at.Token)
	case !exact:
		return f.inexact(key)
	case found == nil:
		return fmt.Errorf("%w: %s of %s %s is NULL: set it to 0, and make the column NOT NULL",
			lease.ErrTable, f.at.Token, f.at.Table, text(key))
	}
	return f.compare(key, ownrows.Text(found), token)
}

// compare is about what an exact column has.
func (f *Fence) compare(key any, found string, token lease.Token) error {
	switch n, err := strconv.ParseInt(found, 10, 64); {
	case err == nil && n > int64(token):
		return fmt.Errorf("%w: %s %s was written under token %d, and this transaction has %d: the "+
			"lock has had another holder since; roll back",
			lease.ErrFenced, f.at.Table, text(key), n, token)
	case err == nil && n == int64(token) && f.d.Clamps:
		return nil
	}
	return fmt.Errorf("%w: %s of %s %s is %s and was not raised to %d: make the column BIGINT, and "+
		"let no trigger or row policy keep it from being written; roll back",
		lease.ErrTable, f.at.Token, f.at.Table, text(key), found, token)
}

// inexact refuses a column in which two tokens can be equal, or "9" above "10".
func (f *Fence) inexact(key any) error {
	return fmt.Errorf("%w: %s of %s is no column of integers, and does not compare tokens exactly: make "+
		"it BIGINT, and roll back (pass %s)", lease.ErrTable, f.at.Token, f.at.Table, text(key))
}

func (f *Fence) several(key any, rows int64) error {
	return fmt.Errorf("%w: %s has %d rows with %s %s: make it unique, and roll back",
		lease.ErrTable, f.at.Table, rows, f.at.Key, text(key))
}

func (f *Fence) check(tx lease.Runner, key any, token lease.Token) error {
	switch {
	case isnil.Value(tx):
		return fmt.Errorf("%w: tokenfence.Pass for %s: the transaction is nil; begin one",
			lease.ErrConfig, f.at.Table)
	case ownrows.Plain(key) == nil:
		return fmt.Errorf("%w: tokenfence.Pass for %s: the key is nil, and no row has it",
			lease.ErrConfig, f.at.Table)
	}
	return checkToken(token)
}

// checkToken refuses what no lock has: a forgotten token is 0, and one beyond the last would keep
// every holder out forever.
func checkToken(token lease.Token) error {
	if token < 1 || token >= lease.MaxToken {
		return fmt.Errorf("%w: %d is no token of a lock: give Lock.Token", lease.ErrConfig, token)
	}
	return nil
}

func (f *Fence) explain(key any, err error) error {
	what := fmt.Sprintf("pass %s %s", f.at.Table, text(key))
	var told interface{ SQLState() string }
	switch {
	case f.d.Overtaken(err):
		return fmt.Errorf("%w: %s: %w (roll back and try again)", lease.ErrBusy, what, err)
	case errors.As(err, &told) && slices.Contains(mistyped, told.SQLState()):
		return fmt.Errorf("%w: %w", f.inexact(key), err)
	}
	return ownrows.Explain(f.d, what, err)
}

// mistyped are the codes by which PostgreSQL says that a column has no numbers: no such operator,
// and a value of another type than the column's.
var mistyped = []string{"42883", "42804"}

// text shows a key in messages.
func text(key any) string {
	switch ownrows.Plain(key).(type) {
	case string, []byte:
		return fmt.Sprintf("%q", ownrows.Text(key))
	}
	return ownrows.Text(key)
}
