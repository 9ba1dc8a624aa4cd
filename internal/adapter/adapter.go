// Package adapter is all that a client knows of its store and its database: every ability of a
// lease.Store is resolved once, and there is one answer for each item.
package adapter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rowlockdb/rowlock/lease"
)

// As returns the ability T of the store, or of the first store beneath it that has it. A type
// assertion alone would lose each ability that a wrapper does not repeat: a wrapper without Settle
// has let Close return while an acquire was running, and the key stayed locked for a TTL.
func As[T any](s lease.Store) (ability T, ok bool) {
	for s != nil {
		if ability, ok = s.(T); ok {
			return ability, true
		}
		w, wraps := s.(lease.Wrapper)
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	return ability, false
}

// Count returns err, or the error of a call that returned another number of answers than it was
// asked for. What such a call did is unknown, because no answer can be told to belong to an item.
func Count(what string, answers, items int, err error) error {
	if err == nil && answers != items {
		err = fmt.Errorf("%w: %s: %w: the store gave %d answers to %d requests",
			lease.ErrUnknown, what, lease.ErrCorrupt, answers, items)
	}
	return err
}

// Each returns one answer for each item: those of the call, or failed(err) for each if the call
// failed.
func Each[A any](what string, answers []A, err error, items int, failed func(error) A) []A {
	if err != nil || len(answers) != items {
		return slices.Repeat([]A{failed(Count(what, len(answers), items, err))}, items)
	}
	return answers
}

// Pick returns the items at some places, for a call about those alone.
func Pick[A any](all []A, places []int) []A {
	out := make([]A, len(places))
	for n, i := range places {
		out[n] = all[i]
	}
	return out
}

// Unrenewed and Unreleased are the answers of a call that has failed.
func Unrenewed(err error) lease.Renewed   { return lease.Renewed{Err: err} }
func Unreleased(err error) lease.Released { return lease.Released{Err: err} }

// acquired is Each for requests that may be granted. Beside an error an answer's other fields mean
// nothing, so that none of them gets past here: a grant and an error never travel together.
func acquired(what string, answers []lease.Acquired, err error, items int) []lease.Acquired {
	if err != nil || len(answers) != items {
		return slices.Repeat([]lease.Acquired{{Err: Count(what, len(answers), items, err)}}, items)
	}
	for i := range answers {
		if err := answers[i].Err; err != nil {
			answers[i] = lease.Acquired{Err: err}
		}
	}
	return answers
}

// outage marks an error of a server that cannot be reached or takes no writes, as during a
// failover. The request was certainly not applied.
type outage struct{ error }

func (e outage) Unwrap() error { return e.error }

// Outage marks err as one that may pass without its caller's doing.
func Outage(err error) error { return outage{err} }

// IsOutage reports whether err was marked, and nothing of the request has an unknown outcome.
func IsOutage(err error) bool {
	return errors.As(err, new(outage)) && !errors.Is(err, lease.ErrUnknown)
}

// ErrLate is the error of what has taken too long by a bound of rowlock's. It is that of no
// context: a caller would take it for that of its own deadline.
var ErrLate = errors.New(
	"no answer in time: the database or its pool has stopped, is cut off or is overloaded")
