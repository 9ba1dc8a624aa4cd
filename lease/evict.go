package lease

import (
	"context"
	"time"
)

// Evictor is a Store that can end the session of a database that keeps an expired key from being taken: a client that has vanished inside
// a transaction that fences, say, of which the server hears nothing for hours.
type Evictor interface {
	// Evict finds the sessions whose transactions have the row of key locked, if its lease has expired, and ends those of the same
	// database user whose transactions are at least that old. Their transactions are rolled back, which is safe: they had not
	// committed. It returns those it has ended and those of other users, which it leaves alone. None and no error say that nothing was
	// in the way. An error that is [ErrPrivilege] says that this user may not look, or end sessions; [ErrUnsupported], that the store
	// cannot.
	Evict(ctx context.Context, key string, least time.Duration) ([]Evicted, error)
}

// Evicted is a session that had the row of an expired key locked.
type Evicted struct {
	// Session is the server's id of it, User who it belongs to.
	Session int64
	User    string
	// Ended is false for another user's, which goes on.
	Ended bool
}
