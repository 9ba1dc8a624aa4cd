package rowlock

import "time"

// Hooks are told of events, for metrics and traces. Each may be nil. They are called without any
// lock held, on the goroutine of the event, and must return soon: the goroutine that keeps every
// lease of the client calls Lost. A hook must not call Close, which waits for it.
type Hooks struct {
	// Acquired: a lock was granted after waiting so long.
	Acquired func(key string, token int64, waited time.Duration)
	// Contended: an attempt found the key held. A waiter makes an attempt when the key may be free,
	// not at each poll.
	Contended func(key string, holder *HeldError)
	// Waiting: a call of Lock or Do begins to wait, or its position has changed. It is called on
	// the caller's own goroutine. See OnWait for a single call.
	Waiting func(key string, w Waiting)
	// Released: the lock was released after it was held so long.
	Released func(key string, token int64, held time.Duration)
	// Lost: a lock ended otherwise than by its holder; cause is ErrLost or ErrMaxHold.
	Lost func(key string, token int64, cause error)
	// RenewFailed: a renewal of so many leases returned an error. The client tries again until
	// their deadlines.
	RenewFailed func(err error, leases int)
	// Evicted: a session of the database was ended, because its transaction had kept an expired key
	// locked for Config.EvictAfter. With an error the session goes on: it is another user's, or
	// unknown (0).
	Evicted func(key string, session int64, err error)
	// Skewed: the store's clock ran ahead of ours by so much between two renewals.
	Skewed func(ahead time.Duration)
}

// Waiting is what a caller of Lock can show while it waits: "behind nightly-report on web-3, 2
// ahead".
type Waiting struct {
	// Ahead is how many waiters stand before this one: of a Fair client in the whole queue,
	// otherwise in this process.
	Ahead int
	// Holder is the holder's note, Remaining how long its lease still lasts unless renewed.
	Holder    string
	Remaining time.Duration
	// Since is how long the call has waited.
	Since time.Duration
}
