package lease

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// Owner names one attempt to acquire: 128 random bits, new for every attempt, never per process or per host. Two
// goroutines of a process, or the same goroutine a second later, are different owners; only so can a late statement of an
// old attempt never touch what a newer one holds. The zero Owner is nobody.
type Owner [16]byte

// NewOwner returns a fresh random owner.
func NewOwner() Owner {
	var o Owner
	rand.Read(o[:]) // never fails: crypto/rand.Read aborts the program rather than return an error
	return o
}

// String returns the owner as 32 hexadecimal digits, as operators find it in the table.
func (o Owner) String() string { return hex.EncodeToString(o[:]) }

// IsZero reports whether o is nobody.
func (o Owner) IsZero() bool { return o == Owner{} }

// Lease names one term of ownership: who, of what, with which token. Every change a store makes to a held row names all
// three, so that a delayed request of an older term finds nothing to change.
type Lease struct {
	Key   string
	Owner Owner
	// Token is the fencing token. In a Release it may be 0: "whatever token this owner was given", for an attempt whose
	// reply was lost before it could name one.
	Token int64
}

// MaxToken is the first token that is never granted. A store refuses with [ErrTokenExhausted] rather than let the number
// wrap: Postgres and MySQL would fail, SQLite would silently go on in floating point.
const MaxToken int64 = 1<<63 - 1<<20

// EpochShift is where the epoch of a token begins: token = epoch<<EpochShift | counter. The epoch grows when a key moves to
// another home; a store grants counter+1 and never looks at it.
const EpochShift = 40

// The homes a key can have besides a cluster. Who makes a key's row decides its home, until the row is swept.
const (
	// HomeTable: the row is the lock.
	HomeTable = 0
	// HomeTransaction: a transaction that stays open is the lock (forupdate), and the row only tells of it.
	HomeTransaction = -1
)

// AcquireRequest asks for one key.
type AcquireRequest struct {
	Key   string
	Owner Owner
	// TTL is how long the lease lasts unless renewed, on the store's clock, counted from when the store grants it.
	TTL time.Duration
	// Note is shown to others who find the key held: who, where, why. At most [MaxNote] bytes.
	Note string
	// Epoch, unless it is 0, is the epoch that the key must be in, at a store that a bridge moves keys to; see paxosbridge. A table
	// takes no notice of it: its rows say themselves where their home is.
	Epoch int64
}

// Acquired is the answer to one AcquireRequest.
type Acquired struct {
	// Granted says the key is owned by the request's owner with Token. False is an answer, not a failure: Holder has who.
	Granted bool
	Token   int64
	// Holder describes the present holder where Granted is false.
	Holder Holder
	// Doubtful says an earlier try of this very request had an unknown outcome before this answer came. A delayed copy of
	// it may still run at the server for a moment, so the caller cleans up by owner after it has released.
	Doubtful bool
	// Locked says that the key was not granted because another transaction has locked its row. A caller
	// that has sent this very request before must take its outcome for unknown: that transaction may be
	// the earlier copy, which is granted when it commits. For the first request of an owner it means only
	// that the key was not to be had.
	Locked bool
	// Possible says, of AcquireAll, that nothing is known to be in this key's way: it was not granted because another was not.
	Possible bool
	// Err is set when this item alone failed; the other fields are then meaningless.
	Err error
}

// Holder is what a loser is told of the one who holds the key.
type Holder struct {
	Note string
	// Remaining is the time to expiry by the store's clock. Zero says that the lease has expired but somebody has the row
	// locked, its late holder's transaction or another taker: ask again soon.
	Remaining time.Duration
}

// RenewRequest asks to extend one lease by TTL from now on the store's clock.
type RenewRequest struct {
	Lease
	TTL time.Duration
}

// RenewOutcome is what became of one renewal.
type RenewOutcome uint8

const (
	// Lost: the row no longer says this owner and token, or its expiry has passed. Final.
	Lost RenewOutcome = iota
	// Extended: the lease now ends TTL after the store's present.
	Extended
	// Busy: the row still names this owner and token but somebody holds a lock on it, as the holder's own fencing
	// transaction does. Nothing was changed; ask again soon. While a row is locked by a fence nobody can take it.
	Busy
)

// String names the outcome.
func (o RenewOutcome) String() string {
	return [...]string{"lost", "extended", "busy"}[o]
}

// Renewed is the answer to one RenewRequest.
type Renewed struct {
	Outcome RenewOutcome
	// Clock is the store's own clock when it answered, as a duration since an epoch of the store's choosing. Only the
	// difference of two readings of one store means anything; it shows whether that clock runs ahead of ours. 0: it has none to tell.
	Clock time.Duration
	// Remaining is, of a lease that is Busy, the time to its expiry by the store's clock when it answered: the expiry that is
	// committed, whatever an open transaction may have written. 0 or less: the lease has expired, or the store cannot say.
	Remaining time.Duration
	// Err is set when this item alone failed; its outcome is then unknown.
	Err error
}

// Released is the answer to one Release.
type Released struct {
	// Gone says there was nothing to release: the row names another owner or token, is free, or does not exist.
	Gone bool
	// Awaited says that another process, or a ticket, waits for the key, so that it is worth telling of. A hint, only filled in
	// where the store knows it at no cost: false may mean that it did not look, or that somebody has just begun to wait.
	Awaited bool
	Err     error
}

// Filter selects rows to inspect. The zero Filter selects every row.
type Filter struct {
	// Keys restricts to these keys; empty means all.
	Keys []string
	// Prefix restricts to keys that begin with these bytes.
	Prefix string
	// After continues a listing: only keys greater than it, in byte order.
	After string
	// Held restricts to rows that have an owner whose lease has not expired.
	Held bool
	// Limit bounds the answer; 0 means 1000.
	Limit int
}

// Record is one row as an operator or a test sees it.
type Record struct {
	Lease
	// Held says the row has an owner and its expiry has not passed, by the store's clock.
	Held bool
	Note string
	// Remaining is the time to expiry (negative: since it), by the store's clock.
	Remaining time.Duration
	// Age is the time since the last grant.
	Age time.Duration
	// Home is HomeTable or HomeTransaction; other values name a cluster the key has moved to.
	Home int
}
