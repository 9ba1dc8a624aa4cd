package forupdate

import (
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/ownrows"
)

var (
	// ErrMissing is what a [*MissingError] is: LockRows was asked for missing rows.
	ErrMissing = errors.New("rowlock: no such row")
	// ErrDeferred is returned on SQLite by a transaction that cannot get the file's write lock,
	// because it was begun without it. Begin it with BEGIN IMMEDIATE, or open the pool with
	// _txlock=immediate.
	ErrDeferred = errors.New("rowlock: transaction was begun deferred")
)

// MissingError names missing rows. errors.Is(err, ErrMissing) holds. The other rows of the call are
// locked.
type MissingError struct {
	Table string
	Keys  []any
}

// Error names the rows.
func (e *MissingError) Error() string {
	keys := make([]string, len(e.Keys))
	for i, k := range e.Keys {
		keys[i] = ownrows.Text(k)
	}
	return fmt.Sprintf("rowlock: %s has no row %s: a missing row cannot be locked; insert it first, or lock a key "+
		"in its place", e.Table, some(keys))
}

// Is makes errors.Is(err, ErrMissing) true.
func (e *MissingError) Is(target error) bool { return target == ErrMissing }

// some shortens a list of keys for a message.
func some(keys []string) string {
	const most = 8
	if n := len(keys) - most; n > 0 {
		return fmt.Sprintf("%q and %d more", keys[:most], n)
	}
	return fmt.Sprintf("%q", keys)
}
