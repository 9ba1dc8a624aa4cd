package lease

import (
	"context"
	"time"
)

// Evictor is a Store that can end the database session that keeps an expired key from being taken.
// Such a session belongs, for example, to a client that vanished inside a transaction that fences:
// the server may hear nothing of it for hours.
type Evictor interface {
	// Evict finds the sessions whose transactions have the row of an expired key locked. It ends
	// those of the same database user whose transactions are at least that old. That is safe,
	// because their transactions had not committed and are rolled back.
	//
	// It returns the sessions it has ended, and those of other users, which it leaves alone. None
	// and no error say that no session was in the way. An error that is [ErrPrivilege] says that
	// this user may not see or end sessions; [ErrUnsupported], that the store cannot.
	Evict(ctx context.Context, key string, least time.Duration) ([]Evicted, error)
}

// Evicted is a session that had the row of an expired key locked.
type Evicted struct {
	// Session is the server's id of the session, and User the database user that it belongs to.
	Session int64
	User    string
	// Ended is false for the session of another user, which goes on.
	Ended bool
	// Prepared is the statement that ends a prepared transaction, which no session has: Session is
	// 0 then. Its application may have to commit it instead.
	Prepared string
}
