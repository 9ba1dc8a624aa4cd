// Package history is what the processes of an attack record: an event for each call of rowlock that
// has returned. It has no opinion; package check has.
package history

import (
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Kind says what an event is about.
type Kind string

const (
	// Grant is an answer to Lock, TryLock, LockAll or TryLockAll: one event for each key.
	Grant Kind = "grant"
	// Unlock is an answer to Unlock: one event for each key.
	Unlock Kind = "unlock"
	// Write is a transaction that began with Fence and counted.
	Write Kind = "write"
	// Stall is a time in which the process, or its connection to the database, stood still.
	Stall Kind = "stall"
	// Move is an answer to MoveOut or MoveBack of a bridge.
	Move Kind = "move"
	// Close is an answer to Close.
	Close Kind = "close"
	// Loss is when a holder was told that its lock is lost. Sent is until when it could be trusted.
	Loss Kind = "loss"
	// Shared is an answer to RLock. Readers that hold a key together have one token.
	Shared Kind = "shared"
	// Read is a reader's fenced transaction that read the counter twice. Value is the difference.
	Read Kind = "read"
	// Effect is an answer to once.Do. Op is the run that it tells of.
	Effect Kind = "effect"
	// Left is the end of a process. Value is how many goroutines its closed clients have left.
	Left Kind = "left"
	// Kept is a key that no caller has and that was found held between Sent and Told.
	Kept Kind = "kept"
	// Spoiled is an answer to Lock for a key that is held and whose row cannot be read. Sent is before
	// its holder had asked for it.
	Spoiled Kind = "spoiled"
	// Force is an answer to ForceRelease.
	Force Kind = "force"
)

// Result is an answer, as far as a check has to tell answers apart.
type Result string

const (
	// OK is a nil error.
	OK Result = "ok"
	// Held is ErrHeld or ErrBusy: nothing was granted, nothing changed.
	Held Result = "held"
	// Lost is ErrLost.
	Lost Result = "lost"
	// Refused is a transaction that was rolled back, so that its write must not be there.
	Refused Result = "refused"
	// Unfenced is Refused by a protected table, which has seen no fence.
	Unfenced Result = "unfenced"
	// Unknown is ErrUnknown, or an error of COMMIT: it may have happened or not.
	Unknown Result = "unknown"
	// Ended is the end of the caller's own ctx.
	Ended Result = "ended"
	// Other is any other error.
	Other Result = "other"
)

// Event is a call that has returned. Sent and Told are nanoseconds of the machine's monotonic
// clock, read before the call and after it: a call that was told before another was sent came
// before it, whatever process made them.
type Event struct {
	Kind    Kind          `json:"k"`
	Process string        `json:"p"`           // worker and life: "3.1" is worker 3 after a kill
	Lock    int64         `json:"l,omitempty"` // the handle, counted in the process
	Act     string        `json:"a,omitempty"` // what the goroutine was doing
	Phase   int           `json:"f"`
	Key     string        `json:"y,omitempty"`
	Token   lease.Token   `json:"t,omitempty"`
	Sent    int64         `json:"s"`
	Told    int64         `json:"e"`
	Result  Result        `json:"r,omitempty"`
	Err     string        `json:"x,omitempty"`
	TTL     time.Duration `json:"d,omitempty"`
	// Limit is how long the call's own ctx allowed it to take; 0 is no limit.
	Limit time.Duration `json:"m,omitempty"`
	// Value and Op are what a Write counted to, and the primary key of its row in the journal.
	Value int64  `json:"v,omitempty"`
	Op    string `json:"o,omitempty"`
	// Left says that UnlockTx was part of a transaction under this lock.
	Left bool `json:"u,omitempty"`
	// Passes says that the transaction of a Write has sent the hand-over of its key.
	Passes bool `json:"h,omitempty"`
}

// Holder names a lock handle among those of all processes.
type Holder struct {
	Process string
	Lock    int64
}

// Holder is whose event it is.
func (e *Event) Holder() Holder { return Holder{e.Process, e.Lock} }

// Row is a row of the journal: a fenced transaction that the database has committed.
type Row struct {
	Op, Key, Process string
	Token            lease.Token
	Lock, Value      int64
}

// Holder is whose row it is.
func (r *Row) Holder() Holder { return Holder{r.Process, r.Lock} }
