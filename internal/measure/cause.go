package measure

import (
	"errors"

	"github.com/rowlockdb/rowlock"
)

// Causes are the values of the attribute Cause on Lost. A metric has all of them from the start,
// because an increase from nothing to 1 is none to Prometheus.
var Causes = []string{"lost", "max_hold", "idle"}

// CauseOf is one of Causes.
func CauseOf(err error) string {
	switch {
	case errors.Is(err, rowlock.ErrMaxHold):
		return "max_hold"
	case errors.Is(err, rowlock.ErrIdle):
		return "idle"
	default:
		return "lost"
	}
}
