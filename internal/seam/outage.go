package seam

import (
	"errors"

	"github.com/rowlockdb/rowlock/lease"
)

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
