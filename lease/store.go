package lease

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Store owns the rows. It decides which owner holds which key, and nothing else: it never waits for
// a key to be free, keeps no timer and renews nothing by itself. The package comment has the
// contract; package locktest proves it.
//
// Every method takes a batch and returns one answer per item, in the order of the items. A batch of
// one is the common case and should cost one statement. A non-nil error is about the whole call: it
// has no answers. If it wraps [ErrUnknown], each item may or may not have taken effect; otherwise
// none has.
//
// A canceled ctx ends the caller's wait, not necessarily the statement. An Acquire that was already
// sent returns ErrUnknown; its caller releases the owner, or repeats the request to learn the
// outcome.
type Store interface {
	// Acquire grants each free or expired key to its requester, with a new token. A repeated
	// request returns the same lease, after a later commit than that of the grant was acknowledged.
	// It may extend the lease to its TTL from now, and never shortens it. The zero owner is
	// refused.
	Acquire(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
	// Renew extends leases that are still owned and have not expired.
	Renew(ctx context.Context, reqs []RenewRequest) ([]Renewed, error)
	// Release ends leases, expired or not. The row and its token stay.
	Release(ctx context.Context, leases []Lease) ([]Released, error)
	// Inspect lists rows in key order and changes nothing. Rows beside an error are right, and may
	// not be all.
	Inspect(ctx context.Context, f Filter) ([]Record, error)
}

// Fencer is a Store whose leases can be checked inside the caller's own transaction on the same
// database.
type Fencer interface {
	// Fence returns nil if the row has this owner and token, and then keeps it from being taken
	// until tx ends. Otherwise its error wraps [ErrFenced], or [ErrForeignTx] if tx is of another
	// database. It locks the row exclusively: of two transactions that fence one lease, the second
	// waits until the first has ended, or fails.
	Fence(ctx context.Context, tx Runner, l Lease) error
}

// RenewingFencer is a Fencer whose fence also renews the lease, within tx. Without it, a renewal
// never finds the row unlocked if transactions that fence follow one right after the other.
type RenewingFencer interface {
	Fencer
	// FenceRenew is Fence. If the lease has not expired, and its expiry is worth the write, it also
	// extends the lease by the request's TTL from now. An expired lease passes, as in Fence, and
	// stays expired.
	//
	// The extension is undone if tx rolls back, so that no caller may trust it. It counts once
	// Renew has answered [Busy] with what remains of the lease as committed.
	FenceRenew(ctx context.Context, tx Runner, r RenewRequest) error
}

// TxReleaser is a Store that can release within the caller's own transaction.
type TxReleaser interface {
	// ReleaseTx releases l exactly if tx commits. Its errors are those of Fence.
	ReleaseTx(ctx context.Context, tx Runner, l Lease) error
}

// SyncRequirer is a Store that can refuse to grant where a commit is acknowledged before another
// server has it. rowlock.New with Config.RequireSync refuses a store that does not report true with
// ErrUnsupported, because a client cannot see how a store keeps what it grants.
type SyncRequirer interface {
	Store
	// RequiresSync reports whether what the store acknowledges outlives the loss of any one server.
	RequiresSync() bool
}

// Sweeper is a Store whose dead rows can be removed.
type Sweeper interface {
	// Sweep removes rows that have been dead (released or expired) for at least the retention. It
	// works in small transactions, and raises the token floor before each removal. It returns how
	// many rows it has removed when the table is done or when ctx ends, then with ctx's error.
	//
	// A row whose tokens have run out stays, because its floor would exhaust other keys too.
	// Tickets that have been dead for the retention are removed too, and not counted.
	Sweep(ctx context.Context, opts SweepOptions) (removed int64, err error)
}

// SweepOptions bound a sweep.
type SweepOptions struct {
	// Retention is how long a row must have been dead; 0 removes what is dead now.
	Retention time.Duration
	// Batch is the largest number of rows that one transaction removes.
	Batch int
	// Pause is slept between transactions, so that a long sweep leaves the database to others.
	Pause time.Duration
}

// Check refuses a negative Retention: a time of death in the future would remove held rows.
func (o SweepOptions) Check() error {
	if o.Retention < 0 {
		return fmt.Errorf("%w: sweep: Retention (%s) is negative; 0 removes what is dead now",
			ErrConfig, o.Retention)
	}
	return nil
}

// Wrapper is a Store that stands before another, for example to count, trace or limit calls. A
// client looks for each ability (Settler, Queue, Passer, AllAcquirer, Fencer, …) in the wrapper
// first, and then in the store beneath.
//
// Calls of an ability that the wrapper lacks go to the store beneath, past the wrapper. So a store
// that changes keys, owners or tokens on their way must not have Unwrap: the store beneath would be
// asked for other keys than it has granted.
type Wrapper interface {
	Store
	// Unwrap returns the store beneath, never nil.
	Unwrap() Store
}

// Settler is a Store whose calls can run on after their callers have left, and that knows when they
// have ended. A client that closes settles its store before it releases the orphans that unknown
// outcomes may have left. Without a Settler it repeats those releases for some seconds instead.
type Settler interface {
	// Settle returns when no earlier request can be granted any more, or when ctx ends.
	Settle(ctx context.Context)
}

// Raiser is a Store that can give a held lease a larger token, so that several stores can grant one
// lease with one token: see package quorum.
type Raiser interface {
	// Raise gives each lease the token To, if the row still names the lease and it has not expired.
	// Owner, expiry and note stay. From then on the row names the lease with To alone, and the next
	// grant of the key is above To. A repeated request finds its own To and answers as the first.
	//
	// Gone says that nothing was changed, because the row names another lease, or because the lease
	// has expired.
	Raise(ctx context.Context, reqs []RaiseRequest) ([]Raised, error)
}

// RaiseRequest asks for a larger token of one lease.
type RaiseRequest struct {
	Lease
	// To is at least the token of the lease, and below [MaxToken].
	To Token
}

// Raised is the answer to one RaiseRequest.
type Raised struct {
	Gone bool
	// Err is set if this item alone failed.
	Err error
}

// Check returns an error for a request that every store refuses: a token that would fall or that no
// grant could follow.
func (r RaiseRequest) Check() error {
	if err := CheckStoredKey(r.Key); err != nil {
		return err
	}
	switch {
	case r.Owner.IsZero() || r.Token <= 0:
		return fmt.Errorf("%w: raise %q: owner %s with token %d names no lease",
			ErrConfig, r.Key, r.Owner, r.Token)
	case r.To < r.Token:
		return fmt.Errorf("%w: raise %q: the token %d would fall to %d; tokens only grow",
			ErrConfig, r.Key, r.Token, r.To)
	case r.To >= MaxToken:
		return fmt.Errorf("%w: raise %q to %d; the last token is %d",
			ErrTokenExhausted, r.Key, r.To, MaxToken-1)
	}
	return nil
}

// Table is the store on a database's tables: for a bridge, or for a store of your own that stands
// before it. Close it after the client.
type Table interface {
	Mover
	AllAcquirer
	RenewingFencer
	TxReleaser
	Sweeper
	Passer
	Notifier
	Registry
	Queue
	io.Closer
}
