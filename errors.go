package rowlock

import (
	"strings"

	"github.com/rowlockdb/rowlock/lease"
)

// The errors of this package are those of package lease, under the names users type. Each message begins with "rowlock:".
var (
	ErrHeld           = lease.ErrHeld           // TryLock, and Lock joined with ctx.Err(): another owner has the key; see *HeldError
	ErrLost           = lease.ErrLost           // cause of Lock.Context; Unlock, Do: the lease ran out or was taken over
	ErrFenced         = lease.ErrFenced         // Fence, UnlockTx: the row names another owner or token; roll back
	ErrUnlocked       = lease.ErrUnlocked       // cause of Lock.Context; Unlock, Fence, UnlockTx after Unlock
	ErrMaxHold        = lease.ErrMaxHold        // cause of Lock.Context: held for the longest time allowed
	ErrInvalidKey     = lease.ErrInvalidKey     // every call with a key: empty, longer than 255 bytes, or reserved
	ErrClosed         = lease.ErrClosed         // every call after Close
	ErrUnknown        = lease.ErrUnknown        // sent, and the outcome could not be learned; what is left of a lock is being cleaned up
	ErrBusy           = lease.ErrBusy           // TryLock, Fence, UnlockTx: the database could not do it for the moment; nothing was changed
	ErrTokenExhausted = lease.ErrTokenExhausted // Lock, TryLock: the key's tokens have run out
	ErrCorrupt        = lease.ErrCorrupt        // a row that rowlock cannot have written; never granted
	ErrForeignTx      = lease.ErrForeignTx      // Fence, UnlockTx: the transaction is of another database
	ErrUnsupported    = lease.ErrUnsupported    // the store lacks the ability that a call or a setting needs
	ErrConfig         = lease.ErrConfig         // Open, New, options: a setting that makes no sense

	ErrNoSchema      = lease.ErrNoSchema      // Open: the tables are missing; run schema.Migrate
	ErrSchemaVersion = lease.ErrSchemaVersion // Open: the tables are too old or too new
	ErrWrongDialect  = lease.ErrWrongDialect  // Open: the database is another product
	ErrReadOnly      = lease.ErrReadOnly      // Open: a replica, or a read-only connection
	ErrPrivilege     = lease.ErrPrivilege     // Open: the database user may not do what is needed
	ErrTopology      = lease.ErrTopology      // Open: a server that can forget a granted lock (Galera, multi-primary)
	ErrNotDurable    = lease.ErrNotDurable    // Open: a table that does not survive a crash, or a database in memory
	ErrPool          = lease.ErrPool          // Open: too few connections allowed in the pool
)

// HeldError is what ErrHeld comes as: who has the key and for how long.
type HeldError = lease.HeldError

// several is what errors.Join returns, in one line: an error with a line break is torn apart by most
// log collectors.
type several []error

// join returns the errors that are not nil as one, or nil.
func join(errs ...error) error {
	var all several
	for _, err := range errs {
		if err != nil {
			all = append(all, err)
		}
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

func (s several) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap makes errors.Is and errors.As find each.
func (s several) Unwrap() []error { return s }
