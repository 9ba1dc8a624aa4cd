package rowlock

import "time"

// Hooks are told of events, for metrics and traces. Each may be nil. They are called without any lock held, on whatever
// goroutine the event happened, and must return soon: Lost is called by the goroutine that keeps every lease of the client. None may call
// Close, which waits for them.
type Hooks struct {
	// Acquired: a lock was got after waiting so long.
	Acquired func(key string, token int64, waited time.Duration)
	// Contended: an attempt found the key held. Whoever waits makes one when the key may have come free, not at each poll.
	Contended func(key string, holder *HeldError)
	// Waiting: a call of Lock or Do begins to wait, or what it waits for has changed. It is called on the caller's own goroutine.
	// See OnWait for a single call.
	Waiting func(key string, w Waiting)
	// Released: Unlock gave the lock back after it was held so long.
	Released func(key string, token int64, held time.Duration)
	// Lost: a lock ended otherwise than by its holder; cause is ErrLost or ErrMaxHold.
	Lost func(key string, token int64, cause error)
	// RenewFailed: a renewal of so many leases returned an error; it is tried again until their deadlines.
	RenewFailed func(err error, leases int)
	// Evicted: a session of the database was ended, whose transaction had kept an expired key locked for Config.EvictAfter. With an
	// error it could not be: session is then another user's, or 0 if it is not known.
	Evicted func(key string, session int64, err error)
	// Skewed: the store's clock ran ahead of ours by so much between two renewals.
	Skewed func(ahead time.Duration)
}

// Waiting is what a caller of Lock can show while it waits: "behind nightly-report on web-3, 2 ahead of you".
type Waiting struct {
	// Ahead is how many wait in front: of a Fair client in the whole queue, otherwise in this process.
	Ahead int
	// Holder is the note of who holds the key, Remaining for how long yet, unless renewed.
	Holder    string
	Remaining time.Duration
	// Since is how long the call has waited.
	Since time.Duration
}
