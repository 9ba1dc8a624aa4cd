package lease

import "context"

// AllAcquirer is a Store that can grant several keys at once, or none of them.
type AllAcquirer interface {
	// AcquireAll grants every key to its requester, as Acquire does, or none. It does not wait, and it
	// keeps no key while another is refused, so that two calls cannot deadlock. If it grants none, it
	// has changed no owner, token or expiry. It may then have made free rows for keys without one, but
	// only if it saw no holder of any key. A repeated request returns the leases as they are.
	//
	// The answers are in the order of the requests. Either all are Granted or none is. If none is,
	// each answer is Possible or its Holder says what Acquire would have said; at least one is not
	// Possible. Err is never set: an error that keeps one key from being granted is the error of
	// the call, and names the key. An error that is [ErrUnknown] may have granted all.
	//
	// Each key may come once. For a key that comes twice, and for a request that Acquire would refuse,
	// the error says so and nothing was done. An error that is [ErrUnsupported] may be about the
	// database: the store has the method, but this database cannot do it. Acquire still can.
	AcquireAll(ctx context.Context, reqs []AcquireRequest) ([]Acquired, error)
}

// AnyAcquirer is a Store that can grant some of several keys, whichever are free.
type AnyAcquirer interface {
	// AcquireAny grants exactly n of the keys, each to its requester as Acquire does, or none. It
	// takes the first that it can have in the order of the requests, so that a caller should begin
	// at a random key. It does not wait: it passes over a key that another transaction has locked.
	// If it grants none, it has changed no owner, token or expiry. It may then have made free rows
	// for keys without one, but only if it saw n keys that were free or had no row.
	//
	// The answers are in the order of the requests. If n of them are Granted, the others say
	// nothing but Unknown. If none is, each is Possible or says what Acquire would have said, and
	// Err is set for a key that this store can never grant. An error of the call that is
	// [ErrUnknown] may have granted any of the keys. Release all owners that are not known to be
	// granted after such an error, and after an answer that is Unknown.
	//
	// A repeated request returns the leases as they are if it finds n, and grants no others. Each
	// key may come once, and n is 1 to the number of requests. Otherwise, and for a request that
	// Acquire would refuse, the error says so and nothing was done. An error that is
	// [ErrUnsupported] says that this store or its database cannot do it. Acquire still can.
	AcquireAny(ctx context.Context, reqs []AcquireRequest, n int) ([]Acquired, error)
}
