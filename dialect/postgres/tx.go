package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Lock is what Fence and UnlockTx need of a *rowlock.Lock.
type Lock interface {
	FenceIn(ctx context.Context, tx lease.Runner) error
	UnlockIn(ctx context.Context, tx lease.Runner) error
}

// Fence is (*rowlock.Lock).Fence for a transaction of pgx itself. Unlock before tx has ended takes
// 2 to 2.5 s to find that out, because pgx cannot be asked while another goroutine may use tx.
func Fence(ctx context.Context, tx pgx.Tx, l Lock) error {
	if err := checkTx(tx); err != nil {
		return err
	}
	return l.FenceIn(ctx, runner{tx})
}

// UnlockTx is (*rowlock.Lock).UnlockTx for a transaction of pgx itself.
func UnlockTx(ctx context.Context, tx pgx.Tx, l Lock) error {
	if err := checkTx(tx); err != nil {
		return err
	}
	return l.UnlockIn(ctx, runner{tx})
}

// Counter is what CountDownTx needs of a *latch.Latch.
type Counter interface {
	CountDownIn(ctx context.Context, tx lease.Runner, party string) error
}

// CountDownTx is (*latch.Latch).CountDownTx for a transaction of pgx itself.
func CountDownTx(ctx context.Context, tx pgx.Tx, l Counter, party string) error {
	if err := checkTx(tx); err != nil {
		return err
	}
	return l.CountDownIn(ctx, runner{tx}, party)
}

// checkTx refuses nil and a nil pointer, as lease.CheckTx does.
func checkTx(tx pgx.Tx) error {
	if isnil.Value(tx) {
		return fmt.Errorf("%w: the transaction is nil; begin one (Begin)", lease.ErrConfig)
	}
	return nil
}

type runner struct{ tx pgx.Tx }

func (r runner) QueryOne(ctx context.Context, query string, args []any, dest ...any) error {
	return asRow(r.tx.QueryRow(ctx, query, args...).Scan(dest...))
}

// asRow is the error of a Scan as database/sql has it.
func asRow(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return sql.ErrNoRows
	}
	return err
}

func (r runner) Exec(ctx context.Context, query string, args []any) (int64, error) {
	tag, err := r.tx.Exec(ctx, query, args...)
	return tag.RowsAffected(), err
}
