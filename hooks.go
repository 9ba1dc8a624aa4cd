package rowlock

import "time"

// Hooks are told of events, for metrics and traces. Each may be nil. They are called without any lock held, on whatever
// goroutine the event happened, and must return soon: Lost is called by the goroutine that keeps every lease of the client.
type Hooks struct {
	// Acquired: a lock was got after waiting so long.
	Acquired func(key string, token int64, waited time.Duration)
	// Contended: an attempt found the key held; once per look at the database.
	Contended func(key string, holder *HeldError)
	// Released: Unlock gave the lock back after it was held so long.
	Released func(key string, token int64, held time.Duration)
	// Lost: a lock ended otherwise than by its holder; cause is ErrLost or ErrMaxHold.
	Lost func(key string, token int64, cause error)
	// RenewFailed: a renewal of so many leases returned an error; it is tried again until their deadlines.
	RenewFailed func(err error, leases int)
	// Skewed: the store's clock ran ahead of ours by so much between two renewals.
	Skewed func(ahead time.Duration)
}
