package lease

import "context"

// AllAcquirer is a Store that can grant several keys at once, or none of them.
type AllAcquirer interface {
	// AcquireAll grants every key to its requester, as Acquire does, or none. It does not wait, and while one key is refused it keeps no
	// other: two calls cannot deadlock. Where it grants none it has changed no owner, token or expiry; it may have made free rows for keys
	// that had none, and those only if nobody was seen to hold any of the keys. A repeated request returns the leases as they are.
	//
	// The answers are in the order of the requests. Either all are Granted or none is; then those that are not Possible say what was in
	// the way, at least one, as Acquire would have: in Holder. Err is never set, because what keeps one key from being granted is the
	// whole call's error, which names the key. An error that is [ErrUnknown] may have granted all.
	//
	// Each key may come once; otherwise, and for a request that Acquire would refuse, the error says so and nothing was done. An error
	// that is [ErrUnsupported] may be about the store: it has the method, but the database under it cannot do it. Acquire then still can.
	AcquireAll(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
}
