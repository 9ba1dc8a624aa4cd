package lease

import (
	"context"
	"time"
)

// Store owns the rows. It decides who holds what, and does nothing else: it never waits for a key to come free, keeps no
// timer and renews nothing by itself. The package comment has the contract; locktest proves it.
//
// Every method takes a batch and returns one answer per item, in the order of the request; a batch of one is the common
// case and should cost one statement. A non-nil error is about the call as a whole: no answer is known. When it wraps
// [ErrUnknown], items may or may not have taken effect; when it does not, nothing has.
//
// A cancelled ctx ends the caller's waiting, not necessarily the statement: an Acquire that was already sent returns
// ErrUnknown, and its caller cleans up by releasing the owner, or resolves it by repeating the request.
type Store interface {
	// Acquire grants each free or expired key to its requester, with a new token. A repeated request returns the same lease, after a
	// commit that comes after the grant was acknowledged. It may extend the lease, to its TTL from now, and never shortens it. The
	// zero owner is refused.
	Acquire(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
	// Renew extends leases that are still owned and not expired.
	Renew(ctx context.Context, reqs []RenewRequest) ([]Renewed, error)
	// Release gives up leases, expired or not. The row and its token stay.
	Release(ctx context.Context, leases []Lease) ([]Released, error)
	// Inspect lists rows in key order without touching them.
	Inspect(ctx context.Context, f Filter) ([]Record, error)
}

// Fencer is a Store whose leases can be checked inside the caller's own transaction on the same database.
type Fencer interface {
	// Fence returns nil if the row says this owner and token, and locks it against being taken until tx ends. Otherwise it
	// wraps [ErrFenced]; or [ErrForeignTx] when tx is of another database. It has the row to itself: of two transactions that
	// fence one lease, the second waits until the first has ended, or fails.
	Fence(ctx context.Context, tx Runner, l Lease) error
}

// RenewingFencer is a Fencer whose fence also renews the lease, within tx. Without it, transactions that fence a lease one
// right after the other leave no moment in which a renewal finds the row unlocked.
type RenewingFencer interface {
	Fencer
	// FenceRenew is Fence. If the lease has not expired, and its expiry is worth the write, it also extends the lease by the
	// request's TTL from now on. An expired lease passes, as in Fence, and stays expired.
	//
	// The extension is undone if tx rolls back, so no caller may trust it. It is trusted when Renew answers [Busy] with what
	// remains of the lease as committed.
	FenceRenew(ctx context.Context, tx Runner, r RenewRequest) error
}

// TxReleaser is a Store that can release within the caller's own transaction.
type TxReleaser interface {
	// ReleaseTx releases l exactly when tx commits. Errors are those of Fence.
	ReleaseTx(ctx context.Context, tx Runner, l Lease) error
}

// Sweeper is a Store whose dead rows can be removed.
type Sweeper interface {
	// Sweep removes rows that have been dead (released or expired) for at least the retention, in small transactions,
	// raising the token floor before each removal. It returns how many it removed when ctx ends (with ctx's error) or the
	// table is done. A row whose tokens have run out is left: its floor would exhaust other keys too. Tickets that have been
	// dead for the retention go too, and are not counted.
	Sweep(ctx context.Context, opts SweepOptions) (removed int64, err error)
}

// SweepOptions bound a sweep.
type SweepOptions struct {
	// Retention is how long a row must have been dead.
	Retention time.Duration
	// Batch is the most rows removed in one transaction.
	Batch int
	// Pause is slept between transactions, so that a long sweep leaves the database room.
	Pause time.Duration
}
