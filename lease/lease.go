package lease

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Owner names one attempt to acquire: 128 random bits, new for every attempt, never one per process
// or host. Two goroutines of a process are different owners, and so is the same goroutine a second
// later. That is why a late statement of an old attempt cannot touch what a newer attempt holds.
// The zero Owner names no attempt.
type Owner [16]byte

// NewOwner returns a fresh random owner.
func NewOwner() Owner {
	var o Owner
	rand.Read(o[:]) // never fails: crypto/rand.Read ends the program instead
	return o
}

// String returns the owner as 32 hexadecimal digits, as operators find it in the table.
func (o Owner) String() string { return hex.EncodeToString(o[:]) }

// IsZero reports whether o is the zero Owner.
func (o Owner) IsZero() bool { return o == Owner{} }

// Lease names one term of ownership: the key, its owner and the token. Every change of a held row
// names all three, so that a delayed request of an older term finds nothing to change.
type Lease struct {
	Key   string
	Owner Owner
	// Token is the fencing token. In a Release it may be 0, which stands for any token of this
	// owner: an attempt whose reply was lost does not know its token.
	Token Token
	// Shared says that the owner is one of the members that hold the key together; see [Sharer].
	Shared bool
}

// EpochShift is the bit at which the epoch of a token begins: token = epoch<<EpochShift | counter.
// The epoch grows when a key moves to a cluster or back, and when an era begins. A store grants one
// above the token, or above the start of the era if that is larger, and never looks at the epoch.
const EpochShift = 40

// The placements of a key besides a cluster. The store that makes a key's row decides it, until
// the row is swept.
const (
	// PlacementTable: the row is the lock.
	PlacementTable = 0
	// PlacementTransaction: an open transaction is the lock (package forupdate); the row only
	// describes it.
	PlacementTransaction = -1
)

// AcquireRequest asks for one key.
type AcquireRequest struct {
	Key   string
	Owner Owner
	// TTL is how long the lease lasts unless renewed, on the store's clock, from its grant on.
	TTL time.Duration
	// Note is shown to other callers that find the key held. A client writes its identity and the
	// caller's note: see [StoredNote]. A store keeps and returns it unchanged. At most
	// [MaxStoredNote] bytes of UTF-8 without NUL.
	Note string
	// Epoch, unless 0, is the epoch that the key must be in, at a store that a bridge moves keys
	// to; see paxosbridge. A table ignores it, because its rows say where they are locked.
	Epoch int64
}

// Acquired is the answer to one AcquireRequest.
type Acquired struct {
	// Granted says that the request's owner holds the key with Token. False is an answer, not a
	// failure: Holder describes the present holder.
	Granted bool
	Token   Token
	// Holder describes the present holder if Granted is false.
	Holder Holder
	// Unknown says that an earlier try of this very request had an unknown outcome. A delayed copy
	// of it may still run at the server for a moment, so the caller releases the owner once more
	// after its own release.
	Unknown bool
	// Locked says that the key was not granted because another transaction has locked its row. A
	// caller that has sent this very request before must treat its outcome as unknown: that
	// transaction may be the earlier copy, which is granted when it commits. For the first request
	// of an owner it means only that the key could not be had.
	Locked bool
	// Possible says, of AcquireAll, that nothing is known to be in this key's way: it was not
	// granted because another key was not.
	Possible bool
	// Generation says, of AcquireWithin, in which generation of the limit the slot was granted. It
	// is 0 if that is not known; such a slot cannot be handed over. See [SlotPasser].
	Generation int64
	// Err is set if this item alone failed. The other fields then mean nothing.
	Err error
}

// Holder describes the holder of a key to a caller that did not get it.
type Holder struct {
	// Note is as in the request that was granted: see [SplitNote].
	Note string
	// Remaining is the time to expiry by the store's clock. Zero says that the lease has expired, but
	// its row is locked by another transaction: the last holder's, or another taker's. Ask again soon.
	Remaining time.Duration
	// Shared says that readers hold the key; see [Sharer]. Note and Remaining are those of the
	// member that lives longest.
	Shared bool
}

// RenewRequest asks to extend one lease by TTL from now on the store's clock.
type RenewRequest struct {
	Lease
	TTL time.Duration
	// Left is at least how long the lease has yet to live, as its holder knows. A fence that finds
	// little of it gone need not extend it.
	Left time.Duration
}

// RenewOutcome is what became of one renewal.
type RenewOutcome uint8

const (
	// Lost: the row no longer has this owner and token, or its expiry has passed. Final.
	Lost RenewOutcome = iota
	// Extended: the lease now ends TTL after the store's present.
	Extended
	// Busy: the row has this owner and token, but another transaction has locked it, as the
	// holder's own fence does. Nothing was changed; ask again soon. A row that a fence has locked
	// cannot be taken.
	Busy
)

// String names the outcome.
func (o RenewOutcome) String() string {
	return [...]string{"lost", "extended", "busy"}[o]
}

// Renewed is the answer to one RenewRequest.
type Renewed struct {
	Outcome RenewOutcome
	// Clock is the store's clock when it answered, as a duration since an epoch of the store's
	// choice. Only the difference of two readings of one store means anything: it shows whether
	// that clock runs faster than ours. 0 means that the store tells no clock.
	Clock time.Duration
	// Remaining is, of a Busy lease, the time to its expiry by the store's clock when it answered.
	// It is the committed expiry, whatever an open transaction may have written. 0 or less: the
	// lease has expired, or the store cannot say.
	Remaining time.Duration
	// Err is set if this item alone failed. Its outcome is then unknown.
	Err error
}

// Released is the answer to one Release.
type Released struct {
	// Gone says that there was nothing to release: the row names another owner or token, is free,
	// or does not exist.
	Gone bool
	// Awaited says that another process or a ticket waits for the key, so that a notification is
	// worth sending. It is only set if the store knows it at no cost. False may mean that the store
	// did not look (see Looked), or that a process has just begun to wait.
	Awaited bool
	// Looked says that the store looked for other processes that wait, so that Awaited is known.
	Looked bool
	// Shared says that other members still hold the key.
	Shared bool
	Err    error
}

// Filter selects rows to inspect. The zero Filter selects every row.
type Filter struct {
	// Keys restricts to these keys; empty means all.
	Keys []string
	// Prefix restricts to keys that begin with these bytes.
	Prefix string
	// After continues a listing: only keys greater than it, in byte order.
	After string
	// Held restricts to rows with an owner whose lease has not expired.
	Held bool
	// Limit is the largest number of rows; 0 means 1000.
	Limit int
}

// Record is one row as an operator or a test sees it.
type Record struct {
	Lease
	// Held says that the row has an owner and has not expired, by the store's clock.
	Held bool
	// Note is as in the request that was granted: an identity, a tab and the caller's note. See
	// [SplitNote].
	Note string
	// Remaining is the time to expiry (negative: since expiry), by the store's clock.
	Remaining time.Duration
	// Age is the time since the last grant.
	Age time.Duration
	// Placement is PlacementTable or PlacementTransaction; another value names the cluster that the
	// key has moved to.
	Placement int
	// Members is how many hold a key that is Shared, and Intent that an intent refuses new ones.
	Members int
	Intent  bool
	// Err says that the row has values that rowlock does not write: it wraps ErrCorrupt. Such a key
	// counts as held. Key is right, and the other fields are what could be read of the row. A
	// forced release repairs it.
	Err error
}

// Identity is the identity in Note: that of the client that holds the key, or held it last.
func (r Record) Identity() string {
	identity, _ := SplitNote(r.Note)
	return identity
}
