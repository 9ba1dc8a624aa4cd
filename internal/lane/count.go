package lane

import (
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// ordinary is how many connections are kept unless told otherwise. Measured with 16 to 1,024 goroutines on two cores, four are slower
// by 1 to 18 %: each takes less at once.
const ordinary = 3

// Count returns how many connections to keep of a pool of limit (0: no limit), of which useful are of use (0: all): as many as asked
// (0: three), and of a small pool no fewer than least. It leaves the application at least one: with none, a worker that holds a lock and
// wants to write would wait for ever.
func Count(asked, useful, limit, least int) (int, error) {
	lanes := asked
	if lanes == 0 {
		lanes = ordinary
		if limit > 0 {
			lanes = max(least, min(lanes, limit-1))
		}
	}
	if useful > 0 {
		lanes = min(lanes, useful)
	}
	if limit > 0 && limit < lanes+1 {
		return 0, fmt.Errorf("%w: MaxOpenConns (%d) must be at least %d: rowlock keeps %d and the application needs one; raise it, or give rowlock a pool of its own",
			lease.ErrPool, limit, lanes+1, lanes)
	}
	return lanes, nil
}
