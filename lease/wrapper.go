package lease

import "context"

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
