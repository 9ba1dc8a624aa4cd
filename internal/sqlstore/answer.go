package sqlstore

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/lease"
)

// Answer is the one row every acquiring section returns: state, token, note and the µs remaining.
type Answer struct {
	State     int64
	Token     lease.Token
	Note      []byte
	Remaining int64
	dest      [4]any // room for Dest
}

// The states of an Answer.
const (
	StateHeld      = 0 // by another owner
	StateMine      = 1 // granted now, by this statement
	StateFree      = 2 // free when the statement began, taken by another while it ran
	StateExhausted = 3 // free, but its tokens have run out
	StateMoved     = 4 // the key's placement is elsewhere
	// Expired, but not taken, because a fence or another taker has the row locked
	StateLocked = 5
	StateQueued = 6 // not held, but another waiter is before the requester in the queue
	StateFound  = 7 // the requester's already, as was read; see FoundError
)

// Dest returns the destinations of the row's columns.
func (a *Answer) Dest() []any {
	a.dest = [...]any{&a.State, &a.Token, &a.Note, &a.Remaining}
	return a.dest[:]
}

// Acquired turns the row, or the error of its statement, into the store's answer. A row that is not
// there has changed since another statement has seen it.
func (a *Answer) Acquired(err error) (lease.Acquired, error) {
	out := lease.Acquired{}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return out, ErrRowShape
	case err != nil:
		return out, err
	}
	switch a.State {
	case StateMine:
		out.Granted, out.Token = true, a.Token
	case StateFound:
		if a.Token > 0 {
			return out, FoundError{a.Token}
		}
		out.Granted = true // and refused below
	case StateHeld:
		// A database that reads the clock twice may be a moment late. An expiry that is no number
		// is later than any, and nothing remains of it.
		if conn.Duration(a.Remaining) < -time.Minute {
			return out, fmt.Errorf("%w: the key is held, and has expired %s ago: its expires_at is no time",
				lease.ErrCorrupt, -conn.Duration(a.Remaining))
		}
		out.Holder = lease.Holder{Note: string(a.Note), Remaining: max(0, conn.Duration(a.Remaining))}
	case StateExhausted:
		out.Err = fmt.Errorf("%w: it stands at %d", lease.ErrTokenExhausted, a.Token)
		if a.Token < 0 {
			out.Err = fmt.Errorf("%w: its token is %d", lease.ErrCorrupt, a.Token)
		}
	case StateMoved:
		out.Err = fmt.Errorf("%w, of another kind of store: in the cluster of a bridge, or in forupdate. "+
			"Lock it there, or take another key (%w)", lease.ErrMoved, lease.ErrUnsupported)
	case StateLocked:
		return out, ErrRowLocked
	case StateQueued: // neither granted nor held
	default:
		return out, ErrRowShape
	}
	if err := conn.CheckToken(out.Granted, out.Token); err != nil {
		return lease.Acquired{}, err
	}
	return out, nil
}
