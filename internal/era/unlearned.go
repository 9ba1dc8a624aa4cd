package era

import (
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// Unlearned is why a session, which has learned no era, refuses to grant. Its pinned connection
// must discard it: the next may learn one.
type Unlearned struct{ Err error }

func (u Unlearned) Error() string { return u.Err.Error() }

// Unwrap returns why no era was learned.
func (u Unlearned) Unwrap() error { return u.Err }

// stale is how old the refusal of a session is if the call that meets it has not dialed.
const stale = time.Second

// refuses returns the holds of a session that has learned no era. What was refused long ago may be
// cured: the call is to ask anew, on another connection.
func refuses(err error) func(lease.Token) error {
	at := time.Now()
	return func(lease.Token) error {
		if time.Since(at) > stale {
			return conn.NotSent{Err: conn.Unsettled{Err: Unlearned{err}}} // discard it
		}
		return conn.NotSent{Err: Unlearned{err}}
	}
}

// IsUnlearned reports whether an error is an Unlearned.
func IsUnlearned(err error) bool { return errors.As(err, new(Unlearned)) }

// spoiled is the error of a transaction that could not be rolled back: a renewal on its session
// would be a part of it, and be told as done.
type spoiled struct{ error }

func (s spoiled) Unwrap() error { return s.error }

// isWhole reports whether a session that has learned no era can do all else: nothing is open in it,
// and it is not at a server that takes no writes, which it must leave, or at tables of another
// version.
func (e *Eras) isWhole(err error) bool {
	switch {
	case errors.As(err, new(spoiled)), errors.Is(err, lease.ErrReadOnly),
		errors.Is(err, lease.ErrSchemaVersion):
		return false
	case errors.Is(err, lease.ErrUnsupported), errors.Is(err, lease.ErrTokenExhausted):
		return true // an answer of the server, which says too little
	}
	return sqlstore.Judge(e.d, err).Class.Good()
}
