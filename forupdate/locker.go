package forupdate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/table"
	"github.com/rowlockdb/rowlock/lease"
)

// Tx is the caller's own transaction: *sql.Tx, *sqlx.Tx, and a *sql.Conn on which BEGIN has been sent. A pool is refused with
// lease.ErrConfig. Without a BEGIN a *sql.Conn locks nothing that lasts: only Postgres tells, and only when Lock or LockRows is called.
type Tx interface {
	lease.Tx
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Locker locks keys, and rows of your own tables, in transactions of your own. It is safe for concurrent use.
//
// A key of a Locker is locked for other transactions, and for a [Store] on the same tables. It is another than the key of a lease that has
// the same name (rowlock.Open, optimistic.New): those do not keep each other out.
//
// A key is a row of rowlock_hold. Where it is not there yet it is made, on a connection of the Locker's own and before the transaction
// looks for it: at MySQL's default isolation a transaction that has looked for an absent row has locked the gap where it would be, and two
// of them deadlock when they insert it. The row stays: see Sweep.
//
// Locks last until the transaction ends, and no longer than its connection. A transaction that is in another database than the Locker's
// locks nothing of value there, and is told so with lease.ErrForeignTx if the key's row is not there. A machine that vanishes without a word
// keeps its locks until the server ends the session: bound that by idle_in_transaction_session_timeout on Postgres,
// idle_transaction_timeout on MariaDB, wait_timeout on MySQL.
type Locker struct {
	rows    *table.Store
	keys    keyRows
	own     bool // Close closes rows
	d       *sqlstore.Dialect
	timeout time.Duration
}

// NewLocker returns a locker on the tables in db, for every database. It takes one connection of the pool for itself. The options are
// Timeout and Logger.
func NewLocker(db DB, d dialect.Dialect, opts ...Option) (*Locker, error) {
	of, o, err := makeOptions(db, d, opts)
	if err != nil {
		return nil, err
	}
	if limit := db.Stats().MaxOpenConnections; limit == 1 {
		return nil, fmt.Errorf("%w: MaxOpenConns (1) must be at least 2: a Locker keeps one connection and the transaction needs one", lease.ErrPool)
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	rows, facts, err := table.Open(ctx, db, of, table.Options{Lanes: 1, Timeout: statementTimeout})
	if err != nil {
		return nil, err
	}
	l := newLocker(rows, of, o)
	l.own = true
	o.warn(ctx, facts)
	return l, nil
}

// Locker returns a locker that shares the store's connections. A key that the store holds is locked for it too, and the reverse. It
// needs no Close.
func (s *Store) Locker(opts ...Option) (*Locker, error) {
	_, o, err := makeOptions(s.conns.db, s.d, opts)
	if err != nil {
		return nil, err
	}
	return newLocker(s.rows, s.d, o), nil
}

func newLocker(rows *table.Store, d *sqlstore.Dialect, o options) *Locker {
	return &Locker{rows: rows, keys: keyRows{rows, d}, d: d, timeout: o.timeout}
}

// Close closes the locker's connection. Locks that transactions have are theirs.
func (l *Locker) Close() error {
	if !l.own {
		return nil
	}
	return l.rows.Close()
}

// Lock locks keys until tx ends, all in one statement and in byte order, so that two callers who name the same keys cannot deadlock. It
// waits for other transactions as long as Timeout says, and ctx lasts; then it returns lease.ErrHeld: somebody has a key, which is no
// trouble of the database's. Trouble, such as a deadlock with locks of another kind, is lease.ErrBusy.
//
// After an error roll the transaction back: on Postgres it is over, elsewhere it may have some of the locks. Locking is best done first: at
// REPEATABLE READ or SERIALIZABLE, what was read before it may be older than the lock.
//
// On SQLite the lock is the file's write lock, which is one for all keys. A transaction that was begun DEFERRED can fail to get it, with
// [ErrDeferred].
func (l *Locker) Lock(ctx context.Context, tx Tx, keys ...string) error {
	return l.lockKeys(ctx, tx, keys, l.lock)
}

// TryLock is Lock without waiting. Where a key is locked it returns a *lease.HeldError that names it; the transaction can go on, and has
// those of the keys locked that were free.
func (l *Locker) TryLock(ctx context.Context, tx Tx, keys ...string) error {
	return l.lockKeys(ctx, tx, keys, l.try)
}

// request is what one call wants locked.
type request struct {
	what          string // for errors
	table, column string // quoted
	keys          []any  // each once, in the order of their text
}

func (l *Locker) lockKeys(ctx context.Context, tx Tx, keys []string, how func(context.Context, Tx, request) (map[string]bool, error)) error {
	if err := lease.CheckTx(tx); err != nil {
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

// looks is how often keys are made that were swept away before they could be locked.
const looks = 3

// until makes the keys' rows and locks them, until all are.
func (l *Locker) until(ctx context.Context, tx Tx, keys []string, r request, how func(context.Context, Tx, request) (map[string]bool, error)) error {
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
	// A lease that nobody has: it is for telling where the transaction is.
	nobody := lease.Lease{Key: keys[0], Owner: lease.NewOwner()}
	if err := l.rows.Fence(ctx, lease.InTx(tx), nobody); errors.Is(err, lease.ErrForeignTx) {
		return err
	}
	return fmt.Errorf("%w: %s: a row was made after this transaction's snapshot, or is swept again and again (roll back and try again; lock first in a transaction, or at READ COMMITTED)", lease.ErrBusy, r.what)
}

// unlocked returns a HeldError if another has locked one of keys, which could not be locked, and otherwise whether to try again: not where
// a row was swept away and MySQL's transaction has looked for it in vain, because at REPEATABLE READ that has locked the gap where we would
// make it anew.
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
