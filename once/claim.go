package once

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

const (
	looks = 4 // at a row that keeps changing, with pauses at one that another has locked
	pause = 25 * time.Millisecond
	slack = 5 * time.Second // for a claim's answer, beyond its wait for others
)

// claim makes the key's row in tx, takes over an expired one, or returns the live one.
func (o *Once) claim(
	ctx context.Context, tx lease.Runner, c sqlstore.OnceClaim, wait time.Duration,
) (row sqlstore.OnceRow, err error) {
	within, cancel := context.WithTimeout(ctx, wait+slack)
	defer func() { cancel(); err = conn.Told(ctx, err) }()
	until := time.Now().Add(wait)
	for left := looks; left > 0; left-- {
		row, err = o.d.ClaimOnce(within, tx, c, wait)
		if err != nil || row.State != sqlstore.OnceExpired && row.State != sqlstore.OnceAbsent {
			return row, err
		}
		if row.State == sqlstore.OnceAbsent {
			continue // removed since it was in our way
		}
		taken, err := takeRow(within, tx, o.d, c)
		switch {
		case err != nil && o.d.Collided(err):
			return sqlstore.OnceRow{State: sqlstore.OnceInFlight}, err // with another taker
		case taken || err != nil:
			return sqlstore.OnceRow{State: sqlstore.OnceMine}, err
		}
		if retry.Sleep(within, pause) && time.Now().Before(until) {
			left++ // for one that has only locked the row, as a sweep does, a claim does not wait
		}
	}
	return row, sqlstore.ErrRowShape
}

// answer is what an existing row says to a request.
func answer(r Request, row sqlstore.OnceRow) (Result, error) {
	switch {
	case row.State == sqlstore.OnceInFlight:
		return Result{}, inFlight(r.Key)
	case row.State != sqlstore.OnceDone:
		return Result{}, fmt.Errorf("%w: once %q: the row is in state %d", lease.ErrCorrupt, r.Key, row.State)
	case !bytes.Equal(row.Fingerprint, r.Fingerprint):
		return Result{}, mismatch(r.Key)
	}
	return Result{Value: row.Result, Replayed: true}, nil
}

// tooLarge returns an error for a result that must not be stored.
func (o *Once) tooLarge(key string, value []byte) error {
	if len(value) > o.cfg.MaxResult {
		return fmt.Errorf("%w: %q has a result of %d bytes; Config.MaxResult is %d: keep large data in a table of "+
			"your own, and return its key", ErrResultTooLarge, key, len(value), o.cfg.MaxResult)
	}
	return nil
}

const (
	// large is from when on the server is asked what it takes: a round trip for values that take
	// longer than one.
	large = 32 << 10
	// besides is what else is in the statement that stores a value.
	besides = 4 << 10
)

// refused returns an error for a result that the server would not take. It would cut the connection
// off, as if another try could succeed, and each try runs the function again.
func (o *Once) refused(ctx context.Context, tx lease.Runner, key string, value []byte) error {
	if o.d.LargestValue == nil || len(value) < large {
		return nil
	}
	most, err := o.d.LargestValue(ctx, tx)
	if err != nil || int64(len(value)+besides) <= most {
		return nil // what stores the value says what is wrong
	}
	return fmt.Errorf("%w: %q has a result of %d bytes; the server's max_allowed_packet is %d: raise it above "+
		"Config.MaxResult (%d), or keep large data in a table of your own, and return its key",
		ErrResultTooLarge, key, len(value), most, o.cfg.MaxResult)
}

// store writes a result into the row. An empty one is not written, because the row already says
// that there is none. Where a database can end the transaction and go on without one, the row is
// written to all the same: that it is still there says that all the function's writes were in the
// transaction that is committed.
func (o *Once) store(ctx context.Context, tx *sql.Tx, c sqlstore.OnceClaim, value []byte) (err error) {
	there := false
	switch {
	case len(value) == 0 && !o.d.Forgets:
		return nil
	case len(value) == 0:
		there, err = confirmRow(ctx, lease.InTx(tx), o.d, c)
	case len(value) < large || o.d.LargestValue == nil:
		there, err = storeRow(ctx, lease.InTx(tx), o.d, c, value)
	default:
		there, err = storeRow(ctx, lease.InTx(prepared{tx}), o.d, c, value)
	}
	if err == nil && !there {
		err = errLostRow
	}
	return err
}

// prepared sends values apart from the statement. With interpolateParams the driver would write
// them into it, where a byte that is escaped takes two: what fits would not any more.
type prepared struct{ *sql.Tx }

func (p prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	statement, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer statement.Close()
	return statement.ExecContext(ctx, args...)
}

// takeRow takes an expired row over. It is not taken if another transaction has taken it, or if it
// was removed.
func takeRow(ctx context.Context, tx lease.Runner, d sqlstore.Texts, c sqlstore.OnceClaim) (bool, error) {
	return found(tx.Exec(ctx, d.Text("once-take"), c.ID(c.Fingerprint, conn.Micros(c.Keep))))
}

// storeRow writes the result into the row that this transaction has made. It is not stored if the
// row has vanished, because the server has rolled the transaction back unnoticed, as InnoDB does
// after a deadlock.
func storeRow(
	ctx context.Context, tx lease.Runner, d sqlstore.Texts, c sqlstore.OnceClaim, result []byte,
) (stored bool, err error) {
	return found(tx.Exec(ctx, d.Text("once-store"), c.ID(result)))
}

// found reports whether a statement has found its row.
func found(n int64, err error) (bool, error) { return n > 0, err }

// countRows returns how many rows a request's tenant has, up to most.
func countRows(
	ctx context.Context, run lease.Runner, d sqlstore.Texts, c sqlstore.OnceClaim, most int,
) (n int, err error) {
	err = run.QueryOne(ctx, d.Text("once-count"), []any{c.Tenant, most}, &n)
	return n, err
}

// confirmRow writes to a row that was read, in tx. Once tx is committed and acknowledged, so is
// the transaction that made the row.
func confirmRow(ctx context.Context, tx lease.Runner, d sqlstore.Texts, c sqlstore.OnceClaim) (bool, error) {
	return found(tx.Exec(ctx, d.Text("once-confirm"), c.ID()))
}
