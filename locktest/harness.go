package locktest

import (
	"cmp"
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Harness tells the suite how to get hold of a store and how to reach behind it. Open and Expire are required. Hooks are
// called from the test's own goroutine, so they may use tb.Fatal.
type Harness struct {
	// Open returns a store over no rows at all. It is called once per property; stores may use the same tables one after
	// the other, as long as each begins without rows. What needs closing is closed with tb.Cleanup.
	Open func(tb testing.TB) lease.Store
	// Another returns a second store on the rows of s, as another process would have. nil means that s itself is used.
	Another func(tb testing.TB, s lease.Store) lease.Store

	// Expire ends key's lease in the store, as if its TTL had passed: a moment ago or a year, but with owner and token left
	// as they are. It does nothing to a key that is free or has no row. It is what spares the suite from sleeping.
	Expire func(tb testing.TB, s lease.Store, key string)
	// SetToken puts token into key's row, which exists. nil skips what can only be seen near the last token.
	SetToken func(tb testing.TB, s lease.Store, key string, token int64)

	// ExpireTicket ends the life of a waiter's ticket, as if its TTL had passed, and AgeTicket makes it as old as if it had
	// joined so much earlier. nil skips what can only be seen of such tickets.
	ExpireTicket func(tb testing.TB, s lease.Store, key string, waiter lease.Owner)
	AgeTicket    func(tb testing.TB, s lease.Store, key string, waiter lease.Owner, by time.Duration)

	// Begin starts a transaction of the caller's own in the database that has s's rows. nil skips the properties of Fence
	// and ReleaseTx.
	Begin func(tb testing.TB, s lease.Store) Tx
	// Foreign starts a transaction in a database that has nothing to do with the store's. nil skips the properties of
	// lease.ErrForeignTx.
	Foreign func(tb testing.TB) Tx
	// SerialTx says that only one transaction can be open at a time and that it holds up every write, as in SQLite. It skips
	// the properties that need two, or a write beside one.
	SerialTx bool

	// Most is how many keys one store can hold at once, as one with a connection for each can hold only so many; at least 32, or 0 for a
	// store without such a bound. Properties that hold more hold as many as that, or are skipped where they prove nothing then.
	Most int
	// Slow asks for fewer goroutines and rounds, for a store that does some ten calls a second rather than thousands.
	Slow bool
	// Load is how long the properties under load run: 0 means 2 s, or 200 ms with -short.
	Load time.Duration

	// patience bounds every wait; 0 means 30 s. The tests of the suite itself have less.
	patience time.Duration
}

// Tx is a transaction of the caller's own: what Fence and ReleaseTx are given, and its end. [SQL] makes one of a *sql.Tx.
type Tx interface {
	lease.Runner
	Commit() error
	Rollback() error
}

// SQL returns tx as a Tx.
func SQL(tx *sql.Tx) Tx {
	return sqlTx{lease.InTx(tx), tx}
}

type sqlTx struct {
	lease.Runner
	tx *sql.Tx
}

func (t sqlTx) Commit() error   { return t.tx.Commit() }
func (t sqlTx) Rollback() error { return t.tx.Rollback() }

func (h Harness) limit() time.Duration { return cmp.Or(h.patience, 30*time.Second) }

func (h Harness) load() time.Duration {
	if h.Load == 0 && testing.Short() {
		return 200 * time.Millisecond
	}
	return cmp.Or(h.Load, 2*time.Second)
}

// most returns n, or as many as the store can hold at once.
func (h Harness) most(n int) int {
	if h.Most > 0 {
		return min(n, h.Most)
	}
	return n
}

// scale returns n, or a part of it for a slow store or a short test.
func (h Harness) scale(n int) int {
	if h.Slow || testing.Short() {
		return max(n/8, 2)
	}
	return n
}
