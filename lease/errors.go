package lease

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrHeld is what a [*HeldError] is: another owner has the key. An answer, not a failure. Returned by TryLock, and joined
	// with ctx.Err() by Lock when its ctx ends before the key came free.
	ErrHeld = errors.New("rowlock: held")
	// ErrLost ends the context of a lock that can no longer prove its lease; also returned by Unlock of such a lock.
	ErrLost = errors.New("rowlock: lost")
	// ErrFenced is returned by Fence and UnlockTx when the row names another owner or token: roll the transaction back.
	ErrFenced = errors.New("rowlock: fenced")
	// ErrUnlocked ends the context of a lock that was released; also returned by Fence and UnlockTx after Unlock.
	ErrUnlocked = errors.New("rowlock: unlocked")
	// ErrMaxHold ends the context of a lock that was held for Config.MaxHold.
	ErrMaxHold = errors.New("rowlock: held for the longest time allowed")
	// ErrInvalidKey is returned by every call that takes a key when the key cannot be locked.
	ErrInvalidKey = errors.New("rowlock: invalid key")
	// ErrClosed is returned by every call on a client or store that was closed.
	ErrClosed = errors.New("rowlock: closed")
	// ErrUnknown says a request was sent and its outcome is not known. What it may have left of a lock is being cleaned up.
	ErrUnknown = errors.New("rowlock: outcome unknown")
	// ErrBusy says the database could not do it for the moment (its write lock, deadlocks, connections), tried several times;
	// nothing was changed. Lock waits for it to pass; TryLock, Fence and UnlockTx return it.
	ErrBusy = errors.New("rowlock: database busy")
	// ErrTokenExhausted is returned by Acquire for a key whose tokens have run out at [MaxToken].
	ErrTokenExhausted = errors.New("rowlock: token exhausted")
	// ErrCorrupt is returned when a row cannot have been written by rowlock. Such a row is never granted.
	ErrCorrupt = errors.New("rowlock: corrupt row")
	// ErrMoved is returned for a key whose home is elsewhere: in a cluster that a bridge has moved it to, or in a transaction of
	// forupdate's. It was not touched here; lock it there.
	ErrMoved = errors.New("rowlock: the key has another home")
	// ErrForeignTx is returned by Fence and UnlockTx when the transaction is of another database than the lock.
	ErrForeignTx = errors.New("rowlock: transaction of another database")
	// ErrTable is returned by what works on your own tables when a table, a column or a row's key is not as it was told.
	ErrTable = errors.New("rowlock: no such table or column")
	// ErrUnsupported is returned when a store lacks the ability a call or a setting needs.
	ErrUnsupported = errors.New("rowlock: not supported by this store")
	// ErrConfig is returned by Open, New and the per-call options for a setting that makes no sense.
	ErrConfig = errors.New("rowlock: invalid configuration")
)

// What Open finds wrong with a database. Each is returned before anything is granted, with the cure in its text.
var (
	// ErrNoSchema: rowlock's tables are missing.
	ErrNoSchema = errors.New("rowlock: tables missing")
	// ErrSchemaVersion: the tables are older or newer than this version of rowlock.
	ErrSchemaVersion = errors.New("rowlock: schema version")
	// ErrWrongDialect: the database is another product than the dialect speaks.
	ErrWrongDialect = errors.New("rowlock: wrong dialect")
	// ErrReadOnly: the connection or server takes no writes, as a replica does.
	ErrReadOnly = errors.New("rowlock: read-only")
	// ErrPrivilege: the database user lacks a privilege.
	ErrPrivilege = errors.New("rowlock: missing privilege")
	// ErrTopology: the server is of a kind on which a granted lock can be forgotten, as a multi-writer cluster is.
	ErrTopology = errors.New("rowlock: unsafe topology")
	// ErrNotDurable: the table does not survive a crash (UNLOGGED, MyISAM, MEMORY, :memory:).
	ErrNotDurable = errors.New("rowlock: not durable")
	// ErrPool: the pool cannot give rowlock the connections it must keep to itself.
	ErrPool = errors.New("rowlock: pool too small")
)

// HeldError tells a loser what is known of the holder. errors.Is(err, ErrHeld) holds.
type HeldError struct {
	Key string
	// Note is the holder's, as given with rowlock.Note.
	Note string
	// Remaining is the time until the holder's lease expires unless renewed, by the store's clock.
	Remaining time.Duration
}

// Error describes the holder.
func (e *HeldError) Error() string {
	by := ""
	if e.Note != "" {
		by = fmt.Sprintf(" by %q", e.Note)
	}
	if e.Remaining <= 0 {
		return fmt.Sprintf("rowlock: %q is held%s", e.Key, by) // by a transaction, or by one whose lease is over and whose row is locked
	}
	return fmt.Sprintf("rowlock: %q is held%s, for %s more unless renewed", e.Key, by, e.Remaining.Round(time.Millisecond))
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
