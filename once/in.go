package once

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// In is [Once.Do] within a transaction that the caller has begun and will commit: f's effects, the
// claim and the result exist if and when it is committed. Call it before any statement that reads,
// so that a serialization failure can be told from a repeat.
//
// After a COMMIT of yours that was not answered, a Replayed result counts only if tx writes
// something and is committed, because what In reads may be on one server alone.
//
// If f has run and failed, or panicked, or its result cannot be kept, In has rolled tx back: a
// commit would keep half of it, as done. In tries nothing again. It waits for a repeat in flight in
// the database alone, with the caller's connection. After ErrBusy or ErrInFlight roll back and
// begin anew.
//
// The transactions of other libraries have a *sql.Tx underneath: bun's and sqlx's in their field
// Tx, gorm's in Statement.ConnPool. postgres.SQLTx makes one of a pgx.Tx.
func (o *Once) In(ctx context.Context, tx *sql.Tx, r Request, f Func) (Result, error) {
	if err := o.check(ctx, r, f); err != nil {
		return Result{}, err
	}
	if tx == nil {
		return Result{}, fmt.Errorf("%w: once %q: the transaction is nil", lease.ErrConfig, r.Key)
	}
	c, run := r.row(o.cfg.Keep), lease.InTx(tx)
	wait := o.cfg.Wait
	if o.cfg.NoWait {
		wait = 0
	}
	if err := r.fence(ctx, tx); err != nil {
		return Result{}, err
	}
	row, err := o.claim(ctx, run, c, wait)
	if err != nil {
		return Result{}, o.explainIn("claim", r.Key, err)
	}
	if row.State != sqlstore.OnceMine {
		return answer(r, row)
	}
	return o.doIn(ctx, tx, r, c, f)
}

func (o *Once) doIn(ctx context.Context, tx *sql.Tx, r Request, c sqlstore.OnceClaim, f Func) (_ Result, err error) {
	whole := false
	defer func() {
		if whole {
			return
		}
		end, stop := sqlstore.Ending(ctx)
		defer stop()
		o.d.Rollback(end, tx)
	}()
	value, err := f(ctx, tx)
	if err != nil {
		return Result{}, err
	}
	if err := o.tooLarge(r.Key, value); err != nil {
		return Result{}, err
	}
	if err := o.refused(ctx, lease.InTx(tx), r.Key, value); err != nil {
		return Result{}, err
	}
	err = o.store(ctx, tx, c, value)
	if errors.Is(err, sql.ErrTxDone) {
		return Result{}, endedByF(r.Key, err)
	}
	if err != nil {
		return Result{}, o.explainIn("store the result of", r.Key, err)
	}
	whole = true
	return Result{Value: kept(value)}, nil
}

// explainIn is explain, for a transaction that the caller can begin again.
func (o *Once) explainIn(verb, key string, err error) error {
	if sqlstore.Judge(o.d, err).Class == sqlstore.Conflict {
		return fmt.Errorf("%w: %s %q: %w (roll back and try again)", lease.ErrBusy, verb, key, err)
	}
	return o.explain(verb, key, err)
}
