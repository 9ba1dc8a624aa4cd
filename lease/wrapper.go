package lease

import "context"

// Wrapper is a Store that stands before another: one that counts, traces or limits calls. A client
// looks for each ability (Settler, Queue, Passer, AllAcquirer, Fencer, …) in the wrapper first, and
// then in the store beneath it.
//
// An ability that the wrapper does not have itself is called past the wrapper. A Store that changes
// keys, owners or tokens on their way must not have Unwrap: the store beneath would be asked for other
// keys than those it has granted.
type Wrapper interface {
	Store
	// Unwrap returns the store beneath, never nil.
	Unwrap() Store
}

// Settler is a Store whose calls can run on after their callers have left, and that knows when they
// have ended. A client that closes settles its store before it releases what unknown outcomes may have
// left. Without a Settler it goes on releasing for some seconds instead.
type Settler interface {
	// Settle returns when nothing that was asked before it can be granted any more, or when ctx ends.
	Settle(ctx context.Context)
}
