package locktest

import (
	"cmp"
	"database/sql"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Harness tells the suite how to open a store and how to reach behind it. Open and Expire are
// required. Hooks are called from the test's own goroutine, so that they may use tb.Fatal.
type Harness struct {
	// Open returns a store without rows. It is called once per property, or with Empty once, for
	// Run. Stores may use the same tables one after the other, if each begins without rows. Close
	// what needs closing with tb.Cleanup.
	Open func(tb testing.TB) lease.Store
	// Another returns a second store on the rows of s, as another process would have. nil means
	// that s itself is used.
	Another func(tb testing.TB, s lease.Store) lease.Store
	// Empty removes all rows of s, so that it and Another's serve the next property too, for stores
	// that take longer to open than a property does. After a property that has failed, Open opens
	// another. nil: each property has a store of its own.
	Empty func(tb testing.TB, s lease.Store)

	// Expire ends key's lease in the store, as if its TTL had passed a moment or a year ago, and
	// leaves owner and token as they are. It does nothing to a free key or a key without a row. It
	// saves the suite from sleeping.
	Expire func(tb testing.TB, s lease.Store, key string)
	// SetToken writes token into key's row, which exists. nil skips properties of the last tokens.
	SetToken func(tb testing.TB, s lease.Store, key string, token lease.Token)

	// ExpireTicket ends a waiter's ticket, as if its TTL had passed. AgeTicket makes it older, as
	// if the waiter had joined earlier by that much. nil skips the properties that need them.
	ExpireTicket func(tb testing.TB, s lease.Store, key string, waiter lease.Owner)
	AgeTicket    func(tb testing.TB, s lease.Store, key string, waiter lease.Owner, by time.Duration)

	// ExpireMember ends the lease of one member that shares key, as if its TTL had passed.
	// AgeIntents makes the intents for key older by that much. nil skips the properties of sharing.
	ExpireMember func(tb testing.TB, s lease.Store, key string, owner lease.Owner)
	AgeIntents   func(tb testing.TB, s lease.Store, key string, by time.Duration)

	// Begin starts a transaction of the caller's own in the database that has s's rows. nil skips
	// the properties of Fence and ReleaseTx.
	Begin func(tb testing.TB, s lease.Store) Tx
	// Foreign starts a transaction in an unrelated database. nil skips the properties of
	// lease.ErrForeignTx.
	Foreign func(tb testing.TB) Tx
	// SerialTx says that only one transaction can be open at a time and that it blocks every write,
	// as in SQLite. It skips the properties that need two, or a write beside one.
	SerialTx bool

	// Most is the largest number of keys that one store can hold at once, at least 32; a store with
	// a connection per held key has such a limit. 0 means no limit. Properties that hold more hold
	// this many, or are skipped if they would prove nothing.
	Most int
	// Steady says that the store relies on a lease to last for its TTL while a call runs, as a store
	// over several databases does. Expire is then never called while another call is under way.
	Steady bool
	// Slow asks for fewer goroutines and rounds, for a store that makes some ten calls per second
	// instead of thousands, and takes lease.ErrBusy for an answer under load.
	Slow bool
	// Load is how long the properties under load run: 0 means 2 s, or 200 ms with -short.
	Load time.Duration

	// Without names topics that Run skips, as "acquire any", and properties, as "renew/a renewal
	// extends the lease": those that another run over the same statements proves, and those that a
	// store does not promise. Run fails on a name that is neither's.
	Without []string

	// patience bounds every wait; 0 means 30 s. The tests of the suite itself have less.
	patience time.Duration
}

// Tx is a transaction of the caller's own, with its end. Fence and ReleaseTx get it. [SQL] makes
// one of a *sql.Tx.
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

func (h Harness) limit() time.Duration { return cmp.Or(h.patience, time.Minute) }

func (h Harness) load() time.Duration {
	if h.Load == 0 && testing.Short() {
		return 200 * time.Millisecond
	}
	return cmp.Or(h.Load, 2*time.Second)
}

// most returns n, or the largest number that the store can hold at once.
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
