package sqlstore

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Batch are the statements that serve many callers with one commit. Each takes a list of any length as parameters, so that one
// prepared statement serves every size. The list has each key once, in key order; rows are locked in that order, so that two batches
// cannot deadlock. None waits for a row that somebody else has locked: one slow fence would have everybody in the batch wait.
type Batch interface {
	// Apply makes each change that can be made, or with all either every one of them or none. It does for each what Acquire, Release
	// and HandOver do for one, except that it leaves what is not simple to them (Alone).
	Apply(ctx context.Context, s *Session, changes []Change, all bool) ([]Applied, error)
	// Create makes the rows that are not there, and grants them: Done, or Alone for a key that has a row by now. A change without To
	// makes a free row.
	Create(ctx context.Context, s *Session, changes []Change) ([]Applied, error)
}

// Change is a row's way from one owner to the next.
type Change struct {
	// From is who has it: its key, owner and token (0: whatever token). The zero owner is whoever had it when its lease ran out.
	From lease.Lease
	// To is who is to have it, with the next token; the zero owner is nobody, and the token stays.
	To   lease.Owner
	Note string
	TTL  time.Duration
}

// Acquires reports whether the change is from nobody to somebody.
func (c *Change) Acquires() bool { return c.From.Owner.IsZero() }

// Releases reports whether the change is to nobody.
func (c *Change) Releases() bool { return c.To.IsZero() }

// Applied is what became of a Change. The zero value says that nothing is known, and nothing was done.
type Applied struct {
	Outcome Outcome
	// Token is the row's, where the change was made.
	Token int64
	// Awaited says that somebody else waits for the key that was released; see lease.Released.
	Awaited bool
	// Holder is who has the key that was not acquired.
	Holder lease.Holder
}

// Outcome is how a Change ended.
type Outcome uint8

const (
	// Alone: it was not made, and may be possible: the row is locked by somebody, or in a state that the statement for one is to see.
	Alone Outcome = iota
	// Done: it was made, by this very statement.
	Done
	// Held: it was not made, because the key has another owner.
	Held
	// Gone: it was not made, because From is not or no longer the owner.
	Gone
	// Absent: it was not made, because there is no row.
	Absent
	// Possible: it was not made, although it could have been, because others could not.
	Possible
	// Found: it was not made, because the row was read to be the new owner's already; see FoundError.
	Found
)
