package latch

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/latch/internal/rows"
	"github.com/rowlockdb/rowlock/lease"
)

// CountDownTx is CountDown within tx: the party has counted down if and when tx is committed. If tx
// is rolled back, it has not. It costs one statement, or two on MySQL and MariaDB.
//
// tx must be one of the database that the latch is in, or the error wraps lease.ErrForeignTx. After
// any error roll tx back. If another transaction that is still open counts the same party down,
// CountDownTx waits for it, for as long as the database's own limit or ctx allows.
//
// No process is told of the commit: waiters poll, or call [Latch.Wake] after it.
func (l *Latch) CountDownTx(ctx context.Context, tx lease.Tx, party string) error {
	if err := lease.CheckTx(tx); err != nil {
		return fmt.Errorf("latch %q: %w", l.name, err)
	}
	return l.CountDownIn(ctx, lease.InTx(tx), party)
}

// CountDownIn is CountDownTx for a transaction of another kind than database/sql's; see
// dialect/postgres.
func (l *Latch) CountDownIn(ctx context.Context, tx lease.Runner, party string) error {
	if isnil.Value(tx) {
		return fmt.Errorf("%w: latch %q: the transaction is nil; begin one", lease.ErrConfig, l.name)
	}
	if err := l.s.checkParty(ctx, l.name, party); err != nil {
		return err
	}
	counted, err := rows.CountIn(ctx, tx, l.s.d, l.row, party)
	if err != nil {
		return l.inTx(err)
	}
	if counted {
		return nil
	}
	return l.notIn(ctx, tx)
}

func (l *Latch) inTx(err error) error {
	v := sqlstore.Judge(l.s.d, err)
	switch {
	case v.Class == sqlstore.Conflict:
		return fmt.Errorf("%w: count down latch %q: %w (roll back and try again)", lease.ErrBusy, l.name, err)
	case errors.Is(v.As, lease.ErrNoSchema):
		return l.foreign(err)
	}
	return l.s.explain("count down", l.name, err)
}

// notIn distinguishes a generation that is over from a transaction of another database.
func (l *Latch) notIn(ctx context.Context, tx lease.Runner) error {
	var instance string
	if err := tx.QueryOne(ctx, l.s.d.Text("instance"), nil, &instance); err != nil {
		return l.inTx(err)
	}
	if instance != l.s.instance {
		return l.foreign(fmt.Errorf("its tables are %s, the latch's %s", instance, l.s.instance))
	}
	v, err := rows.LookAt(l.s.d, l.row, func(query string, args []any, dest ...any) error {
		return tx.QueryOne(ctx, query, args, dest...)
	})
	if err != nil {
		return l.inTx(err)
	}
	// A snapshot that is older than this latch shows none, or the generation before.
	if !v.Live || v.Generation < l.generation {
		if now, err := l.s.look(ctx, l.row); err == nil && now.Live && now.ID == l.row.ID {
			return fmt.Errorf("%w: latch %q: the transaction's snapshot is older than the latch: roll back and "+
				"begin anew", lease.ErrBusy, l.name)
		}
	}
	return l.gone(v)
}

func (l *Latch) foreign(err error) error {
	return fmt.Errorf("%w: latch %q is in another database than the one this transaction writes to; begin it on "+
		"the pool that was given to latch.New (%w)", lease.ErrForeignTx, l.name, err)
}

// Wake has the waiters of this process look at the latch at once, and except on SQLite those of
// other processes, if it is open. Nothing depends on it. Call it after the commit of a CountDownTx.
func (l *Latch) Wake() {
	if l.s.stopped.Err() == nil {
		l.s.counted(l)
	}
}
