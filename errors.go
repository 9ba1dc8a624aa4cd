package rowlock

import "github.com/rowlockdb/rowlock/lease"

// The errors of this package are those of package lease, under the names that users type.
// Packages forupdate, optimistic, once and paxosbridge return them too, beside errors of their
// own. Each message begins with "rowlock:".
var (
	// ErrHeld is what a [*HeldError] is: another owner has the key. TryLock returns it, and Lock
	// joins it with ctx.Err() when its ctx ends first.
	ErrHeld = lease.ErrHeld
	// ErrLost is the cause of Lock.Context, and returned by Unlock and Do, when the lease expired
	// or was taken over.
	ErrLost = lease.ErrLost
	// ErrFenced is returned by Fence and UnlockTx when the row names another owner or token. Roll
	// back.
	ErrFenced = lease.ErrFenced
	// ErrUnlocked is the cause of Lock.Context after Unlock; Unlock, Fence and UnlockTx then
	// return it.
	ErrUnlocked = lease.ErrUnlocked
	// ErrMaxHold is the cause of Lock.Context when the lock was held for the longest time allowed.
	ErrMaxHold = lease.ErrMaxHold
	// ErrNotHeld is returned by ForceRelease if the key is free, or held with another token than the
	// one to end.
	ErrNotHeld = lease.ErrNotHeld
	// ErrIdle is the cause of Lock.Context when MaxIdle was set and the holder has not called
	// Progress for so long.
	ErrIdle = lease.ErrIdle
	// ErrInvalidKey is returned by every call with a key that is empty, longer than 255 bytes, or
	// reserved.
	ErrInvalidKey = lease.ErrInvalidKey
	// ErrClosed is returned by every call after Close.
	ErrClosed = lease.ErrClosed
	// ErrUnknown says that a statement was sent and its outcome could not be learned. The client
	// releases in the background what it may have left of a lock.
	ErrUnknown = lease.ErrUnknown
	// ErrBusy is returned by TryLock, Fence and UnlockTx when the database could not do it for the
	// moment. Nothing was changed. Lock waits instead.
	ErrBusy = lease.ErrBusy
	// ErrTokenExhausted is returned by Lock and TryLock for a key whose tokens have run out.
	ErrTokenExhausted = lease.ErrTokenExhausted
	// ErrCorrupt is returned for a row that rowlock cannot have written. Such a row is never
	// granted.
	ErrCorrupt = lease.ErrCorrupt
	// ErrMoved is returned by Lock and TryLock for a key that is locked elsewhere: in a cluster
	// that a bridge has moved it to (package paxosbridge), or in a transaction that stays open
	// (package forupdate). Lock it there.
	ErrMoved = lease.ErrMoved
	// ErrDeadlock is what a [*DeadlockError] is: the call would wait for itself. Lock, TryLock, Do and
	// LockAll return it for a key that their ctx holds already.
	ErrDeadlock = lease.ErrDeadlock
	// ErrQuota is what a [*QuotaError] is: a Namespace is at its limit. Nothing was sent.
	ErrQuota = lease.ErrQuota
	// ErrUpgrade is returned by Lock, TryLock, Do and LockAll for a key that their ctx holds by
	// RLock.
	ErrUpgrade = lease.ErrUpgrade
	// ErrLimit is what a [*LimitError] is: a semaphore has another limit than this process uses.
	ErrLimit = lease.ErrLimit
	// ErrForeignTx is returned by Fence and UnlockTx when the transaction is of another database.
	ErrForeignTx = lease.ErrForeignTx
	// ErrTable is returned by packages forupdate and optimistic when a table, a column or a key of
	// the caller's own is not as described.
	ErrTable = lease.ErrTable
	// ErrUnsupported is returned when the store lacks the ability that a call or a setting needs.
	ErrUnsupported = lease.ErrUnsupported
	// ErrConfig is returned by Open, New and per-call options for a setting that makes no sense.
	ErrConfig = lease.ErrConfig
)

// Open returns these, with the cure in the text, when a database cannot be trusted with locks.
var (
	// ErrNoSchema: the tables are missing. Run schema.Migrate.
	ErrNoSchema = lease.ErrNoSchema
	// ErrSchemaVersion: the tables are too old or too new for this version of rowlock.
	ErrSchemaVersion = lease.ErrSchemaVersion
	// ErrWrongDialect: the database is another product than the dialect is for.
	ErrWrongDialect = lease.ErrWrongDialect
	// ErrReadOnly: the server is a replica, or the connection is read-only.
	ErrReadOnly = lease.ErrReadOnly
	// ErrPrivilege: the database user lacks a privilege.
	ErrPrivilege = lease.ErrPrivilege
	// ErrTopology: the server can forget a granted lock, as Galera or a multi-primary group can.
	ErrTopology = lease.ErrTopology
	// ErrNotDurable: the table does not survive a crash, or the database is in memory.
	ErrNotDurable = lease.ErrNotDurable
	// ErrNotSynchronous: Config.RequireSync is set, and the server would acknowledge a commit that no
	// other server has. Calls return it too, while a failover has led the client to such a server.
	ErrNotSynchronous = lease.ErrNotSynchronous
	// ErrPool: the pool allows fewer connections than rowlock needs.
	ErrPool = lease.ErrPool
)

// The types of these errors, and of what they and the hooks name; see package lease.
type (
	// HeldError is what ErrHeld comes as: who has the key, and for how long.
	HeldError = lease.HeldError
	// DeadlockError is what ErrDeadlock comes as.
	DeadlockError = lease.DeadlockError
	// LimitError names the limit that this process uses and the one in force. Nothing was granted.
	LimitError = lease.LimitError
	// QuotaError says which limit of a Namespace a call would have exceeded. Nothing was sent.
	QuotaError = lease.QuotaError
	// Suspicion is a wait that may never end; see Hooks.Suspected.
	Suspicion = lease.Suspicion
	// Link is one of those who wait for each other.
	Link = lease.Link
	// Token is a fencing token: an integer that is a string in JSON and in logs.
	Token = lease.Token
)
