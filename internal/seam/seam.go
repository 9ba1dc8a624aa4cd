// Package seam finds what a store can do besides lease.Store.
package seam

import "github.com/rowlockdb/rowlock/lease"

// As returns the ability T of the store, or of the first store beneath it that has it. A type
// assertion alone would lose each ability that a wrapper does not repeat: a wrapper without Settle has
// let Close return while an acquire was running, and the key stayed locked for a TTL.
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
