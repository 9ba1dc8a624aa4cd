package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Commit commits tx. If the driver gives no way to bound that, COMMIT is sent as a statement, which
// ends with ctx and takes the connection with it; then Rollback has yet to be called, so that
// database/sql lets go of the connection.
//
// Commit and Rollback of a *sql.Tx take no context, and drivers differ in what bounds them. pgx
// uses the context that the transaction was begun with, and SQLite waits for no network.
// go-sql-driver/mysql waits for the answer for as long as the TCP connection lasts, which can be
// hours.
//
// An error that is not the server's own, and not sql.ErrTxDone, leaves the outcome unknown.
func (d *Dialect) Commit(ctx context.Context, tx *sql.Tx) error {
	if !d.UnwatchedTx {
		return tx.Commit()
	}
	_, err := tx.ExecContext(ctx, `COMMIT`)
	return err
}

// Rollback rolls tx back, or does nothing if it is over. It returns when database/sql has let go of
// the connection, or with ctx.
func (d *Dialect) Rollback(ctx context.Context, tx *sql.Tx) {
	if !d.UnwatchedTx {
		_ = tx.Rollback()
		return
	}
	if _, err := tx.ExecContext(ctx, `ROLLBACK`); errors.Is(err, sql.ErrTxDone) {
		return
	}
	letGo(ctx, tx)
}

// letGo lets go of the connection of a transaction that Commit has committed, or of which the
// connection has gone. It returns when that is done, or with ctx: database/sql sends another
// ROLLBACK, which has no bound.
func letGo(ctx context.Context, tx *sql.Tx) {
	freed := make(chan struct{})
	go func() {
		defer close(freed)
		_ = tx.Rollback()
	}()
	select {
	case <-freed:
	case <-ctx.Done():
	}
}

const (
	// endTimeout bounds the end of a transaction: what it has yet to write and its COMMIT, or its
	// ROLLBACK.
	endTimeout = 10 * time.Second
	// grace is how long the end may take when the caller's context has ended, before or meanwhile.
	grace = 2 * time.Second
)

// Ending ends a grace after ctx does, and after endTimeout. Where ctx has a deadline it leaves half
// of the time that is left to find out what became of a COMMIT that was not answered.
func Ending(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := endTimeout
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, max(grace, time.Until(end)/2))
	}
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() { stop(); cancel() }
}

// errCut: PostgreSQL answers a canceled wait for its synchronous standby with success and a
// warning, which drivers discard.
var errCut = errors.New("the answer to the COMMIT came after it was canceled, when success says nothing of replicas")

// Transaction is one that rowlock begins and ends. A context that ends makes its statements fail,
// and never rolls it back at some moment, which could be that of the COMMIT.
type Transaction struct {
	Tx *sql.Tx

	d    *Dialect
	conn *sql.Conn // that no other call uses meanwhile; nil if the caller's library has it
	cut  context.CancelFunc
	bad  bool // the connection must be discarded
}

// BeginOn begins on a pinned connection, where database/sql runs nothing again, and takes it over.
// The error wraps driver.ErrBadConn if the connection is of no use: it was lost, or lib/pq discards
// it, because the application has left a transaction open. SQLite refuses to begin another, and
// gives the open one the file's write lock all the same.
func (d *Dialect) BeginOn(ctx context.Context, pinned *sql.Conn, opts *sql.TxOptions) (*Transaction, error) {
	t, err := d.BeginBy(ctx, pinned.BeginTx, opts)
	if err != nil && d.OneWriter && Judge(d, err).Class != Conflict {
		_ = d.Abandon(ctx, pinned)
		t, err = d.BeginBy(ctx, pinned.BeginTx, opts)
	}
	if err != nil {
		_ = pinned.Raw(func(c any) error {
			if v, ok := c.(driver.Validator); ok && !v.IsValid() {
				err = fmt.Errorf("%w: %w", driver.ErrBadConn, err)
			}
			return nil
		})
		_ = pinned.Close()
		return nil, err
	}
	t.conn = pinned
	return t, nil
}

// BeginBy is BeginOn for what begins on a connection of the caller's library's. It waits no longer
// than ctx does, because SQLite's BEGIN IMMEDIATE waits for the other writers.
func (d *Dialect) BeginBy(
	ctx context.Context, begin Beginner, opts *sql.TxOptions,
) (*Transaction, error) {
	within, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cut)()
	tx, err := d.BeginTx(within, begin, opts)
	if err != nil {
		cut()
		return nil, err
	}
	return &Transaction{Tx: tx, d: d, cut: cut}, nil
}

// Over is why nothing is left to commit, if a statement has ended the transaction: the server would
// answer the COMMIT with success all the same.
func (t *Transaction) Over() (err error) {
	if t.conn != nil && t.d.Over != nil {
		_ = t.conn.Raw(func(c any) error { err = t.d.Over(c); return nil })
	}
	return err
}

// Commit commits, until end is over: see Ending. After an error the connection is discarded,
// because SQLite leaves the transaction open if it is too busy to commit, and database/sql would
// give it to the next caller.
func (t *Transaction) Commit(end context.Context) error {
	stop := context.AfterFunc(end, t.cut)
	err := t.commit(end)
	if !stop() && err == nil {
		err = errCut
	}
	t.bad = err != nil && !errors.Is(err, sql.ErrTxDone)
	return err
}

// commit sends COMMIT as a statement on a connection that it could not discard: a transaction that
// SQLite has left open can then be rolled back.
func (t *Transaction) commit(end context.Context) error {
	if t.conn == nil && t.d.OneWriter {
		_, err := t.Tx.ExecContext(end, `COMMIT`)
		return err
	}
	return t.d.Commit(end, t.Tx)
}

// End rolls back what was not committed, and gives the connection back or, if it must be, discards
// it.
func (t *Transaction) End(end context.Context, committed bool) {
	if !t.d.UnwatchedTx {
		defer t.cut()
		defer context.AfterFunc(end, t.cut)()
		_ = t.Tx.Rollback()
		t.leave()
		return
	}
	if !committed {
		_, _ = t.Tx.ExecContext(end, `ROLLBACK`) // on a connection that has gone it returns at once
	}
	if t.conn == nil { // a late ROLLBACK would be that of the caller's next transaction on it
		defer t.cut()
		letGo(end, t.Tx)
		return
	}
	// What is left is a round trip that cannot be bounded, and that no caller needs to wait for.
	go func() {
		defer t.cut()
		_ = t.Tx.Rollback()
		t.leave()
	}()
}

func (t *Transaction) leave() {
	if t.conn == nil {
		return
	}
	if t.bad {
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = t.conn.Close()
}

// Finisher is a transaction of DoTx, which has fenced what it releases.
type Finisher interface {
	// Finish runs query, a release, or sends it together with COMMIT. If it changes no row, either
	// fails.
	Finish(ctx context.Context, query string, args []any) error
}

// Finish has the release name the mark of the fence, too, where a transaction can end unnoticed. A
// deadlock takes the mark back together with all that was written before.
func (t owned) Finish(ctx context.Context, query string, args []any) error {
	none := sql.ErrNoRows
	if t.d.Forgets {
		query, none = query+" "+t.d.Text("fenced-here"), errForgotten
	}
	n, err := t.Exec(ctx, query, args)
	if err == nil && n == 0 {
		err = none
	}
	return err
}

// errForgotten: InnoDB rolls a deadlock's victim back as a whole, and commits each later statement
// by itself; DDL commits what came before it.
var errForgotten = fmt.Errorf("%w: the transaction was ended before its function returned: by a deadlock whose error "+
	"the function has not returned, or by DDL. What the function wrote afterwards is committed, and was not "+
	"fenced: return the errors of statements, and run no DDL", lease.ErrUnknown)

// mark is a savepoint for a transaction that no mark in a row can tell from another: readers'
// fences leave none, and a lock that goes on may have been fenced before.
const mark = "rowlock_section"

// Mark has Marked find out whether the transaction is still the one that was begun.
func (d *Dialect) Mark(ctx context.Context, tx lease.Runner) error {
	_, err := tx.Exec(ctx, "SAVEPOINT "+mark, nil)
	return err
}

// Marked returns errForgotten if the database has ended the transaction since Mark.
func (d *Dialect) Marked(ctx context.Context, tx lease.Runner) error {
	_, err := tx.Exec(ctx, "RELEASE SAVEPOINT "+mark, nil)
	if err == nil || errors.Is(err, sql.ErrTxDone) || Judge(d, err).Class != Refused {
		return err
	}
	return fmt.Errorf("%w (%w)", errForgotten, err)
}

// Unmark has a transaction that keeps the lock on key leave no mark of its fence. The triggers of
// protected tables would believe it in the session's next transaction.
func (d *Dialect) Unmark(ctx context.Context, tx lease.Runner, key string) error {
	if !d.Forgets {
		return nil // it leaves none
	}
	_, err := tx.Exec(ctx, d.Text("fence-end"), []any{[]byte(key)})
	if as := Judge(d, err).As; errors.Is(as, lease.ErrPrivilege) || errors.Is(as, lease.ErrReadOnly) {
		return nil // its fence could leave none
	}
	return err
}

// InTx is lease.InTx for statements of d. Types of other libraries get parameters: they may keep a
// prepared statement for each text.
func (d *Dialect) InTx(tx lease.Tx) lease.Runner {
	run := lease.InTx(tx)
	if _, own := tx.(*sql.Tx); !own || d.Spell == nil {
		return run
	}
	return spelled{run, d.Spell}
}

// spelled has no parameters in what it sends.
type spelled struct {
	tx    lease.Runner
	spell func(query string, args []any) string
}

func (s spelled) QueryOne(ctx context.Context, query string, args []any, dest ...any) error {
	return s.tx.QueryOne(ctx, s.spell(query, args), nil, dest...)
}

func (s spelled) Exec(ctx context.Context, query string, args []any) (int64, error) {
	return s.tx.Exec(ctx, s.spell(query, args), nil)
}
