package latch

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound is returned for a latch or barrier that was never opened, or that was removed
	// because Config.Keep has passed.
	ErrNotFound = errors.New("rowlock: no such latch")
	// ErrParties is what a [*PartiesError] is.
	ErrParties = errors.New("rowlock: another number of parties")
	// ErrStale is what a [*StaleError] is: the latch was reset.
	ErrStale = errors.New("rowlock: an older generation of the latch")
	// ErrBroken is what a [*BrokenError] is: a party of a barrier has died.
	ErrBroken = errors.New("rowlock: broken barrier")
	// ErrFull is returned by Enter for a party that comes after the barrier has opened. It may
	// enter when all have left.
	ErrFull = errors.New("rowlock: the barrier is open for other parties")
	// ErrNotEntered is returned by Leave for a party that is not in the barrier.
	ErrNotEntered = errors.New("rowlock: party has not entered the barrier")
)

// PartiesError says that a name is in use with another number of parties.
type PartiesError struct {
	Name    string
	Parties int // that the caller asked for
	Found   int // that the latch has
}

// Error names both numbers.
func (e *PartiesError) Error() string {
	return fmt.Sprintf("rowlock: latch %q has %d parties, and was opened for %d: use one number in every "+
		"process, or another name", e.Name, e.Found, e.Parties)
}

// Is makes errors.Is(err, ErrParties) true.
func (e *PartiesError) Is(target error) bool { return target == ErrParties }

// StaleError says that a latch was reset, so that what was asked for has no effect on its present
// generation. A count down whose answer was lost, and that was repeated after a reset, may have
// counted in the generation that is over.
type StaleError struct {
	Name       string
	Generation int64 // the caller's
	Current    int64 // the latch's
}

// Error names both generations.
func (e *StaleError) Error() string {
	return fmt.Sprintf("rowlock: latch %q is in generation %d, and the caller's is %d: open it again",
		e.Name, e.Current, e.Generation)
}

// Is makes errors.Is(err, ErrStale) true.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// BrokenError says that a party has entered a barrier and has then stopped its heartbeat. Every
// party that waits gets it.
type BrokenError struct {
	Name       string
	Generation int64
	Party      string // one that has stopped; empty if it has come back since
}

// Error names the party.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("rowlock: barrier %q is broken in generation %d: party %q has entered and stopped its "+
		"heartbeat; Reset begins the next generation", e.Name, e.Generation, e.Party)
}

// Is makes errors.Is(err, ErrBroken) true.
func (e *BrokenError) Is(target error) bool { return target == ErrBroken }

func notFound(name string) error {
	return fmt.Errorf("%w: %q: open it first, or more often than Config.Keep", ErrNotFound, name)
}
