package seam

import "errors"

// ErrNewEra is the error of a grant in an era that is held back. Nothing was granted.
var ErrNewEra = errors.New("rowlock: the server's history is new, and no audit has admitted its era")

// EraGate is a store that can hold back what it would grant in a new era, while its caller finds
// out what the server has forgotten. Reads, renewals, releases and moves go on.
type EraGate interface {
	// Era is the start of the newest era that the store has met.
	Era() int64
	// AdmitEras has every grant fail with ErrNewEra in an era that begins after last. A negative
	// last admits all again.
	AdmitEras(last int64)
}
