package once

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrInFlight is what an [*InFlightError] is: another transaction has the key. Do and In return
	// it.
	ErrInFlight = errors.New("rowlock: in flight")
	// ErrMismatch is returned by Do and In if the key was used for a request with another
	// fingerprint, which was done, or is being done in this process. The function has not run.
	ErrMismatch = errors.New("rowlock: key used for another request")
	// ErrResultTooLarge is returned by Do and In if the function's result is larger than
	// Config.MaxResult. Its transaction was rolled back.
	ErrResultTooLarge = errors.New("rowlock: result too large")
	// ErrTenantFull is returned by Do for a new key of a tenant that has Config.MostPerTenant keys.
	// The function has not run.
	ErrTenantFull = errors.New("rowlock: tenant has too many keys")
)

// InFlightError says that another call with the same key had not ended after Config.Wait.
// errors.Is(err, ErrInFlight) holds.
type InFlightError struct {
	Key string
	// RetryAfter is when to ask again. It is a guess, because the other call's duration is unknown.
	RetryAfter time.Duration
}

// Error names the key.
func (e *InFlightError) Error() string {
	return fmt.Sprintf("rowlock: %q is in flight, ask again in %s", e.Key, e.RetryAfter)
}

// Is makes errors.Is(err, ErrInFlight) true.
func (e *InFlightError) Is(target error) bool { return target == ErrInFlight }

const retryAfter = time.Second

func inFlight(key string) error { return &InFlightError{Key: key, RetryAfter: retryAfter} }

func mismatch(key string) error {
	return fmt.Errorf("%w: %q: its fingerprint is not the one it was first used with; use a new key for another "+
		"request", ErrMismatch, key)
}
