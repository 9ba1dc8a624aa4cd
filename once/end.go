package once

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/txend"
)

const (
	// endTimeout bounds the end of a transaction: the store of its result and its COMMIT, or its
	// ROLLBACK.
	endTimeout = 10 * time.Second
	// grace is how long the end may take when the caller's context has ended, before or meanwhile.
	grace = 2 * time.Second
)

// work is a transaction under way, on a connection that no other call uses until it has ended.
type work struct {
	d    *sqlstore.Dialect
	conn *sql.Conn
	tx   *sql.Tx
	cut  context.CancelFunc // of the context that tx was begun with

	bad   bool // the connection must be discarded
	bound context.Context
	stop  context.CancelFunc
}

// ending is the one bound of all that it takes to end the transaction, from its first use on. Each
// part with a bound of its own would add up.
func (w *work) ending(ctx context.Context) context.Context {
	if w.bound == nil {
		w.bound, w.stop = ending(ctx)
	}
	return w.bound
}

// ending ends a grace after ctx does, and after endTimeout. Where ctx has a deadline it leaves half
// of the time that is left to find out what became of a COMMIT that was not answered.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := endTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(grace, time.Until(end)/2))
	}
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() { stop(); cancel() }
}

func (w *work) commit(ctx context.Context) error {
	end := w.ending(ctx)
	stop := context.AfterFunc(end, w.cut)
	err := txend.Commit(end, w.d, w.tx)
	if !stop() && err == nil {
		err = errCut
	}
	return err
}

// over rolls back what was not committed, and gives the connection back or, if it is bad, drops it.
func (w *work) over(ctx context.Context, committed bool) {
	end := w.ending(ctx)
	if !w.d.UnwatchedTx {
		defer w.stop()
		defer w.cut()
		defer context.AfterFunc(end, w.cut)()
		_ = w.tx.Rollback()
		w.leave()
		return
	}
	if !committed {
		_, _ = w.tx.ExecContext(end, `ROLLBACK`) // on a connection that has gone it returns at once
	}
	// What is left is a round trip that cannot be bounded, and that no caller needs to wait for.
	go func() {
		defer w.stop()
		defer w.cut()
		_ = w.tx.Rollback()
		w.leave()
	}()
}

func (w *work) leave() {
	if w.bad {
		_ = w.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = w.conn.Close()
}
