package lane

import (
	"fmt"

	"github.com/rowlockdb/rowlock/lease"
)

// How many connections a store keeps by default, measured on two cores.
const (
	// Merging is for stores that batch what waits. With 16 to 1,024 goroutines four are slower
	// by 1 to 18 %, because each takes less at once.
	Merging = 3
	// Single is for stores that send each operation by itself. With 8 goroutines three are
	// slower by 10 to 20 %.
	Single = 4
)

// Count returns how many connections to keep of a pool of limit (0: no limit), of which useful are
// of use (0: all): as many as asked (0: usual), and of a small pool no fewer than least. It leaves
// the application at least one, because a worker that holds a lock and wants to write would
// otherwise wait for ever.
func Count(asked, usual, useful, limit, least int) (int, error) {
	lanes := asked
	if lanes == 0 {
		lanes = usual
		if limit > 0 {
			lanes = max(least, min(lanes, limit-1))
		}
	}
	if useful > 0 {
		lanes = min(lanes, useful)
	}
	if limit > 0 && limit < lanes+1 {
		return 0,
			fmt.Errorf(
				"%w: MaxOpenConns (%d) must be at least %d: rowlock keeps %d and the application "+
					"needs one; raise it, or give rowlock a pool of its own",
				lease.ErrPool, limit, lanes+1, lanes)
	}
	return lanes, nil
}
