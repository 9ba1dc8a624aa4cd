package once

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// errLostRow: InnoDB rolls all of a transaction back when it is a deadlock's victim, and goes on as if nothing had been begun.
var errLostRow = errors.New("the transaction has lost the row it made: it was ended, by the function or by the database, whose error the function did not return")

// errCut: PostgreSQL answers a cancelled wait for its synchronous standby with success and a warning, which no driver passes on.
var errCut = errors.New("the answer to the COMMIT came after it was cancelled, when success says nothing of replicas")

// attempt is one transaction.
type attempt struct {
	o    *Once
	req  Request
	row  sqlstore.OnceClaim
	f    Func
	wait time.Duration // for another transaction that has the key
	peek bool          // first, because there is to be no wait
	// doubt says that a transaction of this process may have done the key, whose COMMIT was not answered.
	doubt bool

	// What is known afterwards:
	claimed bool // the claim was answered: every attempt before it has ended, and the row says how
	settled bool // the claim was granted: none of the attempts before it was committed
	unknown bool // the COMMIT was sent, and not answered
	again   bool // another attempt may fare better
	busy    bool // it failed before f was run, because of others
	rivals  bool // and those have the key
}

// run does it all on one pinned connection: what database/sql does not hear of there it does not run again.
func (a *attempt) run(ctx context.Context) (Result, error) {
	w, err := a.start(ctx)
	if err != nil {
		return Result{}, err
	}
	committed := false
	defer func() { w.over(ctx, committed) }() // also where f panics
	res, err := a.within(ctx, w)
	if err != nil || res.Replayed && !a.doubt {
		return res, err
	}
	err = a.commit(ctx, w)
	committed = err == nil
	return res, err
}

// start connects and begins. It waits no longer than for a claim: a ctx without deadline would let a connection that hangs keep it.
func (a *attempt) start(ctx context.Context) (*work, error) {
	ctx, cancel := context.WithTimeout(ctx, a.wait+slack)
	defer cancel()
	conn, err := a.o.db.Conn(ctx)
	if err != nil {
		_, err = a.failed("connect", sqlstore.NotSent{Err: err})
		return nil, err
	}
	if a.peek {
		if err := a.look(ctx, conn); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	// A context that ends has f's statements fail. It must not have the transaction roll back at any moment, the commit's included.
	within, cut := context.WithCancel(context.WithoutCancel(ctx))
	tx, err := a.begin(ctx, within, conn, cut)
	if err != nil {
		cut()
		_ = conn.Close()
		_, err = a.failed("begin", sqlstore.NotSent{Err: err})
		return nil, err
	}
	return &work{d: a.o.d, conn: conn, tx: tx, cut: cut}, nil
}

// begin waits no longer than ctx does: SQLite's BEGIN IMMEDIATE is where it waits for the others. Once it has begun, ctx ends nothing.
func (a *attempt) begin(ctx, within context.Context, conn *sql.Conn, cut context.CancelFunc) (*sql.Tx, error) {
	defer context.AfterFunc(ctx, cut)()
	return conn.BeginTx(within, a.o.cfg.TxOptions)
}

// look asks before the transaction whether somebody has the key, where the claim cannot be told not to wait.
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

func (a *attempt) within(ctx context.Context, w *work) (Result, error) {
	tx := w.tx
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
	a.settled = true
	value, err := a.f(ctx, tx)
	if err != nil {
		a.again = a.o.d.Collided(err)
		return Result{}, err
	}
	if err := a.o.tooLarge(a.req.Key, value); err != nil {
		return Result{}, err
	}
	// What f has finished is committed, though ctx may have ended.
	err = a.o.store(w.ending(ctx), lease.InTx(tx), a.row, value)
	if errors.Is(err, sql.ErrTxDone) {
		return Result{}, endedByF(a.req.Key, err)
	}
	if err != nil {
		a.again = worthIt(a.o.d, err)
		return Result{}, a.o.explain("store the result of", a.req.Key, err)
	}
	return Result{Value: kept(value)}, nil
}

// replay answers for a key that was done before. Where this process is in doubt of it, it writes to the row: what was read may not be
// durable, and so it is told only once a commit that comes after it was acknowledged.
func (a *attempt) replay(ctx context.Context, tx *sql.Tx, row sqlstore.OnceRow) (Result, error) {
	res, err := answer(a.req, row)
	if err != nil || !a.doubt {
		return res, err
	}
	confirmed, err := sqlstore.ConfirmOnce(ctx, lease.InTx(tx), a.o.d, a.row)
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

// failed is for what went wrong before f was run.
func (a *attempt) failed(verb string, err error) (Result, error) {
	a.again = worthIt(a.o.d, err)
	a.busy = sqlstore.Judge(a.o.d, err).Class == sqlstore.Conflict || errors.Is(err, driver.ErrBadConn) // which the pool may have many of
	return Result{}, a.o.explain(verb, a.req.Key, err)
}

// worthIt reports whether another transaction may fare better after err, which came before the COMMIT: a lost connection is a
// transaction rolled back.
func worthIt(d *sqlstore.Dialect, err error) bool {
	return !errors.Is(err, errLostRow) && !errors.Is(err, sql.ErrTxDone) && sqlstore.Judge(d, err).Class.Retry()
}

// commit says in a what is known when there is no answer. The connection is then dropped: SQLite leaves the transaction open when it
// is too busy to commit, and database/sql would give it to the next.
func (a *attempt) commit(ctx context.Context, w *work) error {
	err := w.commit(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone):
		return endedByF(a.req.Key, err)
	}
	w.bad = true
	class := sqlstore.Judge(a.o.d, err).Class
	a.unknown = class == sqlstore.Unknown
	a.again = class.Retry()
	return a.o.explain("commit", a.req.Key, err)
}

// endedByF is for a function that has committed or rolled back. Which of them, and with what, nobody knows but itself.
func endedByF(key string, err error) error {
	return fmt.Errorf("%w: once %q: the function has ended the transaction itself, which is not its own: if it has committed, the key is taken and its result is not kept: %w", lease.ErrConfig, key, err)
}
