package lease

import "context"

// AllAcquirer is a Store that can grant several keys at once, or none of them.
type AllAcquirer interface {
	// AcquireAll grants every key to its requester, as Acquire does, or none. It does not wait, and
	// it keeps no key while another is refused, so that two calls cannot deadlock. If it grants
	// none, it has changed no owner, token or expiry. It may then have made free rows for keys
	// without one, but only if it saw no holder of any key. A repeated request returns the leases
	// as they are.
	//
	// The answers are in the order of the requests. Either all are Granted or none is. If none is,
	// each answer is Possible or its Holder says what Acquire would have said; at least one is not
	// Possible. Err is never set: an error that keeps one key from being granted is the error of
	// the call, and names the key. An error that is [ErrUnknown] may have granted all.
	//
	// Each key may come once. For a key that comes twice, and for a request that Acquire would
	// refuse, the error says so and nothing was done. An error that is [ErrUnsupported] may be
	// about the database: the store has the method, but this database cannot do it. Acquire still
	// can.
	AcquireAll(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
}
