// Package seam is how a client calls a lease.Store: every ability of the store resolved once, and
// one answer for each item.
package seam

import (
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
