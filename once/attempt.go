package once

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// errLostRow: InnoDB rolls the whole transaction back if it is a deadlock's victim, and goes on as
// if no transaction had been begun.
var errLostRow = errors.New("the transaction has lost the row it made: it was ended, by the function or by the " +
	"database, whose error the function did not return")

// attempt is one transaction.
type attempt struct {
	o    *Once
	req  Request
	row  sqlstore.OnceClaim
	f    Func
	wait time.Duration // for another transaction that has the key
	peek bool          // first, because the claim must not wait
	// doubt says that a transaction of this process whose COMMIT was not answered may have done the
	// key.
	doubt bool
	// ending bounds all that it takes to end the transaction, from its first use on. Each part with a
	// bound of its own would add up.
	ending func() (context.Context, context.CancelFunc)

	outcome
}

// outcome is what is known after an attempt.
type outcome struct {
	claimed bool // the claim was answered: earlier attempts have ended, and the row says how
	settled bool // the claim was granted: no earlier attempt was committed
	unknown bool // the COMMIT was sent, and not answered
	again   bool // another attempt may succeed
	full    bool // the tenant has all the keys that it may have
	busy    bool // it failed before f ran, because of other transactions
	rivals  bool // and those have the key
}

// run does it all on one pinned connection, where database/sql runs nothing again.
func (a *attempt) run(ctx context.Context) (Result, error) {
	w, err := a.start(ctx)
	if err != nil {
		return Result{}, err
	}
	a.ending = sync.OnceValues(func() (context.Context, context.CancelFunc) { return sqlstore.Ending(ctx) })
	committed := false
	defer func() { // even if f panics
		end, stop := a.ending()
		defer stop()
		w.End(end, committed)
	}()
	res, err := a.within(ctx, w)
	if err != nil {
		return Result{}, err
	}
	if res.Replayed && !a.doubt {
		return res, nil
	}
	if err := a.commit(w); err != nil {
		return Result{}, err
	}
	committed = true
	return res, nil
}

// start connects and begins. It waits no longer than for a claim, because with a ctx without
// deadline a hanging connection would keep it.
func (a *attempt) start(ctx context.Context) (*sqlstore.Transaction, error) {
	within, cancel := context.WithTimeout(ctx, a.wait+slack)
	defer cancel()
	pinned, err := a.o.db.Conn(within)
	if err != nil {
		_, err = a.failed("connect", conn.Told(ctx, conn.NotSent{Err: err}))
		return nil, err
	}
	if err := a.count(within, pinned); err != nil {
		_ = pinned.Close()
		return nil, err
	}
	if a.peek {
		if err := a.look(within, pinned); err != nil {
			_ = pinned.Close()
			return nil, err
		}
	}
	t, err := a.o.d.BeginOn(within, pinned, a.o.cfg.TxOptions)
	if err != nil {
		_, err = a.failed("begin", conn.Told(ctx, conn.NotSent{Err: err}))
		return nil, err
	}
	return t, nil
}

// count looks before the transaction, where it locks nothing at any isolation. A repeat of a stored
// key is answered all the same.
func (a *attempt) count(ctx context.Context, pinned *sql.Conn) error {
	most := a.o.cfg.MostPerTenant
	if most == 0 {
		return nil
	}
	n, err := countRows(ctx, lease.InTx(pinned), a.o.d, a.row, most)
	if err != nil {
		_, err = a.failed("count the keys of the tenant of", conn.NotSent{Err: err})
	}
	a.full = n >= most
	return err
}

// look asks before the transaction whether another has the key, if the claim cannot be told not to
// wait.
func (a *attempt) look(ctx context.Context, conn *sql.Conn) error {
	if a.o.d.PeekOnce == nil {
		return nil
	}
	taken, err := a.o.d.PeekOnce(ctx, lease.InTx(conn), a.row)
	if err != nil {
		_, err = a.failed("look for", err)
		return err
	}
	if taken {
		return inFlight(a.req.Key)
	}
	return nil
}

func (a *attempt) within(ctx context.Context, w *sqlstore.Transaction) (Result, error) {
	tx := w.Tx
	if err := a.req.fence(ctx, tx); err != nil {
		a.again = errors.Is(err, lease.ErrBusy)
		return Result{}, err
	}
	row, err := a.o.claim(ctx, lease.InTx(tx), a.row, a.wait)
	if err != nil {
		a.rivals = row.State == sqlstore.OnceInFlight
		return a.failed("claim", err)
	}
	if row.State != sqlstore.OnceInFlight {
		a.claimed = true
	}
	if row.State != sqlstore.OnceMine {
		return a.replay(ctx, tx, row)
	}
	if a.full {
		return Result{}, fmt.Errorf("%w: %q of tenant %.40q would be more than Config.MostPerTenant, which is %d",
			ErrTenantFull, a.req.Key, a.req.Tenant, a.o.cfg.MostPerTenant)
	}
	a.settled = true
	value, err := a.f(ctx, tx)
	if err != nil {
		a.again = a.o.d.Collided(err)
		return Result{}, err
	}
	if err := a.o.tooLarge(a.req.Key, value); err != nil {
		return Result{}, err
	}
	end, _ := a.ending() // what f has finished is committed, even if ctx has ended
	if err := a.o.refused(end, lease.InTx(tx), a.req.Key, value); err != nil {
		return Result{}, err
	}
	err = a.o.store(end, tx, a.row, value)
	if errors.Is(err, sql.ErrTxDone) {
		return Result{}, endedByF(a.req.Key, err)
	}
	if err != nil {
		a.again = worthIt(a.o.d, err)
		return Result{}, a.o.explain("store the result of", a.req.Key, err)
	}
	return Result{Value: kept(value)}, nil
}

// replay answers for a key that was done before. If an earlier COMMIT of this process was not
// answered, it writes to the row: what was read may not be durable, so that it is reported only
// after a later commit was acknowledged.
func (a *attempt) replay(ctx context.Context, tx *sql.Tx, row sqlstore.OnceRow) (Result, error) {
	res, err := answer(a.req, row)
	if err != nil {
		return Result{}, err
	}
	if !a.doubt {
		return res, nil
	}
	confirmed, err := confirmRow(ctx, lease.InTx(tx), a.o.d, a.row)
	if err == nil && !confirmed {
		err = sqlstore.ErrRowShape
	}
	if err != nil {
		a.again = worthIt(a.o.d, err)
		return Result{}, a.o.explain("confirm", a.req.Key, err)
	}
	return res, nil
}

// kept is what a repeat gets for a value.
func kept(value []byte) []byte {
	if len(value) == 0 {
		return nil
	}
	return value
}

// failed is for an error before f was run.
func (a *attempt) failed(verb string, err error) (Result, error) {
	a.again = worthIt(a.o.d, err)
	// The pool may have many bad connections.
	a.busy = sqlstore.Judge(a.o.d, err).Class == sqlstore.Conflict || errors.Is(err, driver.ErrBadConn)
	return Result{}, a.o.explain(verb, a.req.Key, err)
}

// worthIt reports whether another transaction may succeed after err, which came before the COMMIT.
// A lost connection is a transaction that was rolled back.
func worthIt(d *sqlstore.Dialect, err error) bool {
	return !errors.Is(err, errLostRow) && !errors.Is(err, sql.ErrTxDone) && sqlstore.Judge(d, err).Class.Retry()
}

// commit says in a what is known if there is no answer.
func (a *attempt) commit(w *sqlstore.Transaction) error {
	end, _ := a.ending()
	err := w.Commit(end)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone):
		return endedByF(a.req.Key, err)
	}
	class := sqlstore.Judge(a.o.d, err).Class
	a.unknown = class == sqlstore.Unknown
	a.again = class.Retry()
	return a.o.explain("commit", a.req.Key, err)
}

// endedByF is for a function that has ended the transaction itself. Only the function knows whether
// it has committed, and what.
func endedByF(key string, err error) error {
	return fmt.Errorf("%w: once %q: the function has ended the transaction itself, which is not its own: if it has "+
		"committed, the key is taken and its result is not kept: %w", lease.ErrConfig, key, err)
}
