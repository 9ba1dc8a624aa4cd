package forupdate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// Tx is the caller's own transaction: *sql.Tx, *sqlx.Tx, or a *sql.Conn on which BEGIN was sent. A
// pool is refused with lease.ErrConfig. A *sql.Conn without a BEGIN keeps no lock; only PostgreSQL
// tells, and only when Lock or LockRows is called. postgres.SQLTx makes a *sql.Tx of a pgx.Tx.
type Tx interface {
	lease.Tx
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Locker locks keys, and rows of your own tables, in transactions of your own. It is safe for
// concurrent use.
//
// A key of a Locker is locked against other transactions, and against a [Store] on the same tables.
// It is not locked against a lease of the same name (rowlock.Open, optimistic.New): those two do
// not exclude each other.
//
// A key is a row of rowlock_hold. If it is missing, the Locker makes it on a connection of its own,
// before the transaction reads it. At MySQL's default isolation, a transaction that has read an
// absent row has locked the gap where it would be, and two of them deadlock when they insert it.
// The row stays: see Sweep.
//
// Locks last until the transaction ends, and no longer than its connection. A transaction in
// another database than the Locker's locks nothing of value; it gets lease.ErrForeignTx if the
// key's row is missing there. A machine that vanishes keeps its locks until the server ends the
// session. Bound that by idle_in_transaction_session_timeout on PostgreSQL,
// idle_transaction_timeout on MariaDB, wait_timeout on MySQL.
type Locker struct {
	rows    *table.Store
	keys    keyRows
	own     bool // Close closes rows
	d       *sqlstore.Dialect
	timeout time.Duration
}

// NewLocker returns a Locker on the tables in db, for every database. It keeps one connection of
// the pool. The options are Timeout and Logger. It takes 15 s at most, even if the server does not
// answer.
func NewLocker(db DB, d dialect.Dialect, opts ...Option) (*Locker, error) {
	return NewLockerContext(context.Background(), db, d, opts...)
}

// NewLockerContext is NewLocker, and returns the error of ctx if ctx ends before the Locker is
// open. Without a deadline in ctx it takes 15 s at most. The Locker goes on after ctx has ended;
// Close ends it.
func NewLockerContext(ctx context.Context, db DB, d dialect.Dialect, opts ...Option) (*Locker, error) {
	of, o, err := makeOptions(db, d, opts)
	if err != nil {
		return nil, err
	}
	if limit := db.Stats().MaxOpenConnections; limit == 1 {
		return nil, fmt.Errorf("%w: MaxOpenConns (1) must be at least 2: a Locker keeps one connection and "+
			"the transaction needs one", lease.ErrPool)
	}
	ctx, cancel, err := sqlstore.Opening(ctx, "forupdate.NewLockerContext", openTimeout)
	if err != nil {
		return nil, err
	}
	defer cancel()
	rows, facts, err := table.Open(ctx, db, of.Serving(sqlstore.ForUpdate), table.Options{
		Connections: 1, Timeout: statementTimeout,
	})
	if err != nil {
		return nil, err
	}
	l := newLocker(rows, rows.Dialect(), o)
	l.own = true
	tell.Warn(ctx, o.logger, facts.Server, facts.Warnings)
	return l, nil
}

// Locker returns a Locker that shares the store's connections. A key that the store holds is locked
// against it, and the reverse. It needs no Close.
func (s *Store) Locker(opts ...Option) (*Locker, error) {
	_, o, err := makeOptions(s.conns.db, s.keys.d, opts)
	if err != nil {
		return nil, err
	}
	return newLocker(s.rows, s.keys.d, o), nil
}

func newLocker(rows *table.Store, d *sqlstore.Dialect, o options) *Locker {
	return &Locker{rows: rows, keys: keyRows{rows, d}, d: d, timeout: o.timeout}
}

// Close closes the Locker's connection. Locks of transactions stay.
func (l *Locker) Close() error {
	if !l.own {
		return nil
	}
	return l.rows.Close()
}

// Lock locks keys until tx ends, all in one statement and in byte order, so that two callers that
// name the same keys cannot deadlock. It waits for other transactions until Timeout has passed or
// the deadline of ctx is near, and then returns lease.ErrHeld: another transaction has a key, and
// the database works. If ctx is canceled, the error is that of ctx. A failure of the database, such
// as a deadlock with locks of another kind, is lease.ErrBusy.
//
// After an error roll the transaction back: on PostgreSQL it has ended, elsewhere it may have some
// of the locks. Lock first in a transaction, because at REPEATABLE READ or SERIALIZABLE data that
// was read before may be older than the lock.
//
// On SQLite the lock is the file's write lock, one for all keys. A transaction that was begun
// DEFERRED can fail to get it, with [ErrDeferred].
func (l *Locker) Lock(ctx context.Context, tx Tx, keys ...string) error {
	return l.lockKeys(ctx, tx, keys, l.lock)
}

// TryLock is Lock without waiting. If a key is locked it returns a *lease.HeldError that names it.
// The transaction can go on, and has locked the keys that were free.
func (l *Locker) TryLock(ctx context.Context, tx Tx, keys ...string) error {
	return l.lockKeys(ctx, tx, keys, l.try)
}

// request is what one call wants to lock.
type request struct {
	what          string // for errors
	table, column string // quoted
	keys          []any  // each once, in the order of their text
}

func (l *Locker) lockKeys(
	ctx context.Context, tx Tx, keys []string, how func(context.Context, Tx, request) (map[string]bool, error),
) error {
	if err := checkCall(ctx, tx); err != nil {
		return err
	}
	if len(keys) == 0 {
		return fmt.Errorf("%w: no key to lock", lease.ErrInvalidKey)
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	for _, k := range keys {
		if err := lease.CheckKey(k); err != nil {
			return err
		}
	}
	r := request{what: "lock " + some(keys)}
	if l.wholeFile() {
		_, err := how(ctx, tx, r)
		return err
	}
	column, err := l.d.Quote("key")
	if err != nil {
		return err
	}
	r.table, r.column = l.d.Text("hold-table"), column
	for _, k := range keys {
		r.keys = append(r.keys, []byte(k))
	}
	return l.until(ctx, tx, keys, r, how)
}

// checkCall refuses what no call can work with, before anything is sent.
func checkCall(ctx context.Context, tx Tx) error {
	if err := isnil.Context("lock", ctx); err != nil {
		return err
	}
	return lease.CheckTx(tx)
}

// looks is how often keys are made again that were swept before they could be locked.
const looks = 3

// until makes the keys' rows and locks them, until all are locked.
func (l *Locker) until(
	ctx context.Context, tx Tx, keys []string, r request,
	how func(context.Context, Tx, request) (map[string]bool, error),
) error {
	for range looks {
		if _, err := l.keys.make(ctx, "lock", keys); err != nil {
			return err
		}
		got, err := how(ctx, tx, r)
		if err != nil || len(got) == len(keys) {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return got[k] })
		again, err := l.unlocked(ctx, r, left)
		if err != nil {
			return err
		}
		if !again {
			break
		}
	}
	// A lease without a holder: its fence finds out in which database the transaction is.
	unheld := lease.Lease{Key: keys[0], Owner: lease.NewOwner()}
	if err := l.rows.Fence(ctx, lease.InTx(tx), unheld); errors.Is(err, lease.ErrForeignTx) {
		return err
	}
	return fmt.Errorf("%w: %s: a row was made after this transaction's snapshot, or is swept again and again "+
		"(roll back and try again; lock first in a transaction, or at READ COMMITTED)", lease.ErrBusy, r.what)
}

// unlocked returns a HeldError if another transaction has locked one of keys. Otherwise it returns
// whether to try again. It returns false if a row was swept and MySQL's transaction has read its
// gap, because at REPEATABLE READ that read has locked the gap where the row would be made.
func (l *Locker) unlocked(ctx context.Context, r request, keys []string) (again bool, err error) {
	free, err := l.keys.free(ctx, keys)
	if err != nil {
		return false, err
	}
	there, err := l.lookOutside(ctx, r)
	if err != nil {
		return false, err
	}
	again = true
	for _, k := range keys {
		switch {
		case there[k] && !free[k]:
			return false, &lease.HeldError{Key: k}
		case !there[k] && l.d.ReadsLock:
			again = false
		}
	}
	return again, nil
}

func (l *Locker) wholeFile() bool { return l.d.Text("write-lock") != "" }
