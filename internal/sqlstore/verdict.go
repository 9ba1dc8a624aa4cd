package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Class says what an error means for the statement that returned it.
type Class uint8

const (
	// Unknown: it may or may not have been applied. The default for every unrecognized error.
	Unknown Class = iota
	// Conflict: certainly not applied, because of another transaction at the same moment
	// (deadlock, serialization failure, lock timeout, database busy). Worth another try.
	Conflict
	// Refused: certainly not applied, and another try would fail too.
	Refused
	// Unfit: certainly not applied, because this connection leads to a server that takes no
	// writes, or shuts down. Worth another try on another connection.
	Unfit
)

// String names the class.
func (c Class) String() string { return [...]string{"unknown", "conflict", "refused", "unfit"}[c] }

// Retry reports whether another try of an idempotent statement is worthwhile.
func (c Class) Retry() bool { return c != Refused }

// Good reports whether the connection that returned the error can be used again.
func (c Class) Good() bool { return c == Conflict || c == Refused }

// Verdict is a Class, and the error of package lease that it corresponds to, if any.
type Verdict struct {
	Class Class
	As    error
}

// ErrRowShape is returned by an Acquire that found the row in a state between two others (taken or
// removed since the statement's snapshot). It is a Conflict: look again.
var ErrRowShape = errors.New("row changed underneath")

// ErrRowLocked is returned by an Acquire that found the lease expired and the row locked. If
// another look finds the same, the lock is a fence's and may last: the store then treats the key as
// held.
var ErrRowLocked = errors.New("row locked by another transaction")

// ErrRaised is what the error means that a trigger, or a function that it calls, has raised.
// Servers run no trigger after a commit, so that the statement was undone, or the transaction by
// whose COMMIT a deferred one was run.
var ErrRaised = errors.New("rowlock: a trigger has refused the statement, which was undone; " +
	"let it pass, or drop the trigger")

// ErrNoEra is why a session refuses to grant that has waited in vain for its era. It does not wrap
// the server's error, which a dialect would take for that of its own statement: for a row that is
// locked.
var ErrNoEra = errors.New("no era could be learned")

// Explain says what failed with err, whose verdict is v, and of which kind it is for callers.
func (v Verdict) Explain(what string, err error) error {
	switch {
	case v.As != nil:
		return fmt.Errorf("%w: %s: %w", v.As, what, err)
	case v.Class == Conflict:
		return fmt.Errorf("%w: %s: %w", lease.ErrBusy, what, err)
	}
	return fmt.Errorf("rowlock: %s: %w", what, err)
}

// What names an operation for an error: the verb, and the key if it is about one.
func What(verb, key string) string {
	if key == "" {
		return verb
	}
	return fmt.Sprintf("%s %q", verb, key)
}

// Classifier knows the errors of a database.
type Classifier interface {
	// Classify returns what an error means for the statement that returned it.
	Classify(err error) Verdict
}

// Judge classifies what an operation of d returned, this package's own errors included.
func Judge(d Classifier, err error) Verdict {
	var open conn.Unsettled
	switch {
	case errors.As(err, &open) && open.Committing:
		return Verdict{Class: Unknown}
	case errors.As(err, &open):
		return Verdict{Class: Unfit}
	case errors.Is(err, ErrRowShape), errors.Is(err, ErrRowLocked):
		return Verdict{Class: Conflict}
	case errors.Is(err, lease.ErrNotSynchronous):
		return Verdict{Class: Unfit}
	case errors.Is(err, adapter.ErrNewEra):
		return Verdict{Class: Refused, As: adapter.ErrNewEra}
	case errors.Is(err, ErrNoEra):
		return Verdict{Class: Refused, As: lease.ErrBusy}
	case errors.Is(err, lease.ErrReadOnly):
		return Verdict{Class: Unfit, As: lease.ErrReadOnly}
	case errors.Is(err, lease.ErrCorrupt), errors.Is(err, lease.ErrUnsupported), errors.Is(err, sql.ErrTxDone):
		return Verdict{Class: Refused}
	}
	v := d.Classify(err)
	if v.Class == Unknown && errors.As(err, new(conn.NotSent)) {
		v.Class = Unfit
	}
	return v
}
