package adapter

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock/lease"
)

// Begin begins a transaction that a Transactor ends.
type Begin = func(context.Context, *sql.TxOptions) (lease.Transaction, error)

// Transactor runs what DoTx calls in transactions of a store's database.
type Transactor interface {
	// InTx is tx for statements of locks.
	InTx(tx lease.Tx) lease.Runner
	// Begins begins a transaction of pool, and sets tx to it.
	Begins(pool DB, tx **sql.Tx) Begin
	// BeginsBy begins a transaction of the caller's library.
	BeginsBy(func(context.Context, *sql.TxOptions) (*sql.Tx, error)) Begin
	// Unmark has a transaction that keeps the lock on key leave no mark of its fence.
	Unmark(ctx context.Context, tx lease.Runner, key string) error
	// Transact runs the section until it has succeeded, or failed for good.
	Transact(ctx context.Context, s *Section) error
}

// Section is one call of DoTx, for the transactions that it is tried in.
type Section struct {
	Keys  []string // for errors
	Opts  sql.TxOptions
	Begin Begin
	// Unmarked says that no row of the locks tells one transaction from another.
	Unmarked bool

	Fence func(context.Context, lease.Runner) error
	Call  func(context.Context) error // the caller's function
	// Leave has the transaction give the locks up, or keep them, right before its COMMIT.
	Leave func(context.Context, lease.Transaction) error
	// Ended is called after each Leave, with whether the COMMIT was acknowledged; also if a driver
	// panics.
	Ended func(ctx context.Context, committed bool)
	// Strayed is told that the transaction was not on the server whose tokens the client knows. It
	// reports whether another try would do otherwise.
	Strayed func() bool
}

// KeysOf is one key or several.
func KeysOf[K string | []string](keys K) []string {
	if key, one := any(keys).(string); one {
		return []string{key}
	}
	return any(keys).([]string)
}

// PassInTx hands a lease over in its holder's transaction, as HandOver does in one of its own. It
// returns the next owner's token, which is granted if the transaction is committed. Its errors are
// those of ReleaseTx.
type PassInTx func(ctx context.Context, tx lease.Runner, h lease.HandOver) (lease.Token, error)

// TxPasser is a lease.TxReleaser whose leases a holder's transaction can hand over. Package lease
// has no such ability: a wrapper that did not know it would be passed over.
type TxPasser interface {
	// PassesInTx returns nil if no transaction may hand a lease over now.
	PassesInTx() PassInTx
	// Strayed is called if such a transaction was at another server than the store's.
	Strayed()
}

// PassesInTx returns what hands l over in its holder's transaction, or nil.
func (s *Store) PassesInTx(l lease.Lease) PassInTx {
	if s.TxPasser == nil || l.Shared || l.Token >= lease.MaxToken-1 {
		return nil
	}
	return s.TxPasser.PassesInTx()
}
