package lease

import "time"

// EventKind is what became of a key that is watched.
type EventKind uint8

const (
	// EventGranted: a client holds the key that did not before. A watch begins with one for every
	// key that is held.
	EventGranted EventKind = iota + 1
	// EventReleased: the holder has released the key.
	EventReleased
	// EventExpired: the holder's lease has run out, and no other client has taken the key yet.
	EventExpired
	// EventLost: a lock of the client that watches has ended against its holder's will. Other
	// clients see the same as EventExpired or EventReleased.
	EventLost
	// EventMoved: the key is locked elsewhere than before; see package paxosbridge.
	EventMoved
	// EventForced: an operator took the key from its holder; see rowlock.Client.ForceRelease.
	EventForced

	// Of the trace alone; see rowlock.TraceConfig. EventHandedOver is a grant that the holder made by
	// its release, to a waiter of its own process or, in a Fair client, to the head of the queue.
	EventHandedOver
	// EventRenewedLate: a lease was renewed more than a quarter of its interval too late.
	EventRenewedLate
	// EventWaitedLong: a call has waited for long, and was granted the key or gave up.
	EventWaitedLong
	// EventDropped: a client has dropped events of its trace, because it could not write them in time.
	EventDropped
)

// String names the kind.
func (k EventKind) String() string {
	if k < EventGranted || int(k) > len(kinds) {
		return "unknown"
	}
	return kinds[k-1]
}

var kinds = [...]string{
	"granted", "released", "expired", "lost", "moved", "forced", "handed over", "renewed late",
	"waited long", "dropped",
}

// Event is what became of one key.
type Event struct {
	Kind EventKind
	Key  string
	// Token is that of the grant: of the new holder, or of the one that held the key before.
	Token int64
	// Identity and Note are that holder's, as in HeldError.
	Identity, Note string
	// Remaining is, of a key that is held, how long the lease still lasts unless renewed.
	Remaining time.Duration
	// Skipped is how many events this reader did not get since its last one, because it was slow:
	// earlier events of this key, and those of other keys that were dropped for want of room.
	Skipped int
}
