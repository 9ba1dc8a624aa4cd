package lease

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrHeld is what a [*HeldError] is: another owner has the key. It is an answer, not a failure.
	// TryLock returns it. Lock joins it with ctx.Err() if its ctx ends before the key is free.
	ErrHeld = errors.New("rowlock: held")
	// ErrLost ends the context of a lock that can no longer prove its lease. Unlock of such a lock
	// returns it too.
	ErrLost = errors.New("rowlock: lost")
	// ErrFenced is returned by Fence and UnlockTx if the row names another owner or token. Roll the
	// transaction back.
	ErrFenced = errors.New("rowlock: fenced")
	// ErrUnlocked ends the context of a lock that was released. Fence and UnlockTx return it after
	// Unlock.
	ErrUnlocked = errors.New("rowlock: unlocked")
	// ErrMaxHold ends the context of a lock that was held for Config.MaxHold.
	ErrMaxHold = errors.New("rowlock: held for the longest time allowed")
	// ErrNotHeld is returned by ForceRelease if no client holds the key, or another lease than the one
	// to end.
	ErrNotHeld = errors.New("rowlock: not held")
	// ErrIdle ends the context of a lock whose holder has shown no progress for Config.MaxIdle.
	ErrIdle = errors.New("rowlock: no progress for the longest time allowed")
	// ErrInvalidKey is returned by every call that takes a key, if the key cannot be locked.
	ErrInvalidKey = errors.New("rowlock: invalid key")
	// ErrClosed is returned by every call on a client or store that was closed.
	ErrClosed = errors.New("rowlock: closed")
	// ErrUnknown says that a request was sent and its outcome is unknown. The client cleans up the
	// orphan that it may have left.
	ErrUnknown = errors.New("rowlock: outcome unknown")
	// ErrBusy says that the database could not do it at the moment: its write lock, a deadlock, too
	// many connections. Several tries failed and nothing was changed. Lock waits until it passes;
	// TryLock, Fence and UnlockTx return it.
	ErrBusy = errors.New("rowlock: database busy")
	// ErrTokenExhausted is returned by Acquire for a key whose tokens have reached [MaxToken].
	ErrTokenExhausted = errors.New("rowlock: token exhausted")
	// ErrCorrupt is returned for a row that rowlock cannot have written. Such a row is never
	// granted.
	ErrCorrupt = errors.New("rowlock: corrupt row")
	// ErrMoved is returned for a key that is locked elsewhere: in a cluster that a bridge has moved
	// it to, or in a transaction of package forupdate. The call changed nothing; lock the key there.
	ErrMoved = errors.New("rowlock: the key is locked elsewhere")
	// ErrDeadlock is what a [*DeadlockError] is: a call would wait for a lock that its own call
	// chain holds, or for one whose holder waits for that chain.
	ErrDeadlock = errors.New("rowlock: deadlock")
	// ErrUpgrade is returned by Lock for a key that its ctx holds shared: two readers that did so
	// would wait for each other for ever.
	ErrUpgrade = errors.New("rowlock: a shared lock cannot become exclusive")
	// ErrForeignTx is returned by Fence and UnlockTx if the transaction is of another database than
	// the lock.
	ErrForeignTx = errors.New("rowlock: transaction of another database")
	// ErrTable is returned by calls on your own tables if a table, a column or a row's key is not
	// as the call names it.
	ErrTable = errors.New("rowlock: no such table or column")
	// ErrUnsupported is returned if a store lacks the ability that a call or a setting needs.
	ErrUnsupported = errors.New("rowlock: not supported by this store")
	// ErrConfig is returned by Open, New and the options of a call for a setting that is out of
	// range or contradicts another.
	ErrConfig = errors.New("rowlock: invalid configuration")
)

// What Open finds wrong with a database. It returns each before it grants anything; the text has
// the cure.
var (
	// ErrNoSchema: rowlock's tables are missing.
	ErrNoSchema = errors.New("rowlock: tables missing")
	// ErrSchemaVersion: the tables are older or newer than this version of rowlock.
	ErrSchemaVersion = errors.New("rowlock: schema version")
	// ErrWrongDialect: the database is another product than the dialect is for.
	ErrWrongDialect = errors.New("rowlock: wrong dialect")
	// ErrReadOnly: the connection or server takes no writes, as a replica does.
	ErrReadOnly = errors.New("rowlock: read-only")
	// ErrPrivilege: the database user lacks a privilege.
	ErrPrivilege = errors.New("rowlock: missing privilege")
	// ErrTopology: the server can forget a granted lock, as a multi-writer cluster can.
	ErrTopology = errors.New("rowlock: unsafe topology")
	// ErrNotDurable: the table does not survive a crash (UNLOGGED, MyISAM, MEMORY, :memory:).
	ErrNotDurable = errors.New("rowlock: not durable")
	// ErrNotSynchronous: rowlock.Config.RequireSync is set, and the server would acknowledge a commit
	// that no other server has. A connection made to such a server later returns it too.
	ErrNotSynchronous = errors.New("rowlock: no synchronous replica")
	// ErrPool: the pool allows fewer connections than rowlock keeps.
	ErrPool = errors.New("rowlock: pool too small")
)

// HeldError describes the holder to a caller that did not get the key. errors.Is(err, ErrHeld)
// holds.
type HeldError struct {
	Key string
	// Identity is that of the holder's client, as given with rowlock.Config. It is empty if the
	// program that wrote the row gave none. Note is the holder's, as given with rowlock.Note. Both are
	// as they were found: quote them in a log, as Error does.
	Identity, Note string
	// Remaining is the time until the holder's lease expires unless renewed, by the store's clock.
	// It is 0 or less if a transaction holds the key, or if the lease has expired and its row is
	// locked.
	Remaining time.Duration
	// Shared says that readers hold the key; see rowlock.Client.RLock. The rest is about the one
	// whose lease lasts longest.
	Shared bool
	// Blocked says what keeps the row of an expired lease locked, and what ends that, if an eviction
	// has found it and could not end it: another user's session, a prepared transaction. See
	// rowlock.Config.EvictAfter. It is empty otherwise.
	Blocked string
}

// Error describes the holder in one line, as [Describe] does.
func (e *HeldError) Error() string {
	by := Describe(e.Identity, e.Note)
	if by != "" {
		by = " by " + by
	}
	if e.Blocked != "" {
		return fmt.Sprintf("rowlock: %q is held%s (%s)", e.Key, by, e.Blocked)
	}
	if e.Remaining <= 0 {
		return fmt.Sprintf("rowlock: %q is held%s", e.Key, by)
	}
	return fmt.Sprintf("rowlock: %q is held%s for %s more unless renewed",
		e.Key, by, e.Remaining.Round(time.Millisecond))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
