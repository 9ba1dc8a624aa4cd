package sqlstore

import (
	"context"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Batch has the statements that serve many callers with one commit. Each takes a list of any length
// as parameters, so that one prepared statement serves every size. The list has each key once, in
// key order. Rows are locked in that order, so that two batches cannot deadlock. None of the
// statements waits for a row that another transaction has locked, because one slow fence would
// delay the whole batch.
type Batch interface {
	// Apply makes each change that can be made. With all it makes every one of them or none. It
	// does for each what Acquire, Release and HandOver do for one, but leaves to them what is
	// not simple (Alone).
	Apply(ctx context.Context, s *conn.Session, changes []Change, all bool) ([]Applied, error)
	// ApplyAny makes exactly n of the changes, each of which Acquires, or none: the first that it
	// can make in the order of the list, which need not be key order. The outcomes of the others
	// are known only if it made none. If one is Found it makes none. With a limit it makes none
	// unless the limit has that generation when they are committed.
	ApplyAny(ctx context.Context, s *conn.Session, changes []Change, n int, within *Within) (
		[]Applied, error)
	// ApplyWithin makes each change that can be made, if the limit has that generation when they are
	// committed, and otherwise none. Each hands a slot over.
	ApplyWithin(ctx context.Context, s *conn.Session, changes []Change, within *Within) ([]Applied, error)
	// Create makes and grants the rows that are absent: Done, or Alone for a key that has a row
	// by now. A change without To makes a free row.
	Create(ctx context.Context, s *conn.Session, changes []Change) ([]Applied, error)
}

// Piper makes a few changes sooner than one statement for many does, whose fixed costs are those of
// a dozen plain ones.
type Piper interface {
	// Pipe makes each change that the plain statements for one can make, by one commit: all that it
	// reports as Done were made by that. The others are Alone, and Apply says what they are. None
	// waits for a row that another transaction has locked. The session has a Wire.
	Pipe(ctx context.Context, s *conn.Session, strategy adapter.Strategy, changes []Change) ([]Applied, error)
}

// Change moves a row from one owner to the next.
type Change struct {
	// From is the present holder: its key, owner and token (0: any token). The zero owner
	// stands for the owner of an expired lease, or none.
	From lease.Lease
	// To is the next owner, which gets the next token. With the zero owner the row becomes
	// free, and the token stays.
	To   lease.Owner
	Note string
	TTL  time.Duration
	// Expects is the token that the row of an acquire probably has; 0: not known. It saves a read,
	// and nothing is told from it.
	Expects lease.Token
}

// Acquires reports whether the change gives a free row to an owner.
func (c *Change) Acquires() bool { return c.From.Owner.IsZero() }

// Releases reports whether the change frees the row.
func (c *Change) Releases() bool { return c.To.IsZero() }

// OnlyReleases reports whether every change frees its row, so that the commit may be relaxed.
func OnlyReleases(changes []Change) bool {
	grants := func(c Change) bool { return !c.Releases() }
	return !slices.ContainsFunc(changes, grants)
}

// Applied is the outcome of a Change. The zero value says that nothing is known, and nothing was
// done.
type Applied struct {
	Outcome Outcome
	// Token is the row's, if the change was made.
	Token lease.Token
	// Awaited says that another process waits for the key that was released; see lease.Released.
	Awaited bool
	// Looked says that Awaited is known.
	Looked bool
	// Holder is the holder of a key that was not acquired.
	Holder lease.Holder
	// Generation is the limit's in which a slot was granted, by this statement.
	Generation int64
}

// Outcome is how a Change ended.
type Outcome uint8

const (
	// Alone: it was not made, and may be possible. Another transaction has the row locked, or
	// the statement for one must handle the row's state.
	Alone Outcome = iota
	// Done: it was made, by this statement.
	Done
	// Held: it was not made, because the key has another owner.
	Held
	// Gone: it was not made, because From is not the owner, or no longer.
	Gone
	// Absent: it was not made, because there is no row.
	Absent
	// Possible: it was not made, although it could have been, because other changes could not.
	Possible
	// Found: it was not made, because the row was read to be the new owner's already; see
	// FoundError.
	Found
)
