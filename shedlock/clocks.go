package shedlock

import (
	"fmt"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// tolerance is how far from the database's clock another may be. It is the least Margin that a client
// has by default, for which its holders stop before lock_until.
const tolerance = 500 * time.Millisecond

// stall is how long before it was written a row may have been locked by the database's own clock, which
// a statement reads when it begins: it may then wait for the row, or for a server that is busy.
const stall = 5 * time.Second

// most keys are remembered. Which of more are forgotten does not matter.
const most = 1024

// clocks finds Java processes that write their own clock into rows, if it differs.
type clocks struct {
	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is a grant as it was last seen.
type sighting struct {
	by         string
	locked, at time.Duration // locked_at, and when it was last read, by the database's clock
	behind     time.Duration // proven of the clock that wrote it
}

// isOf allows for the clock that locked_at was subtracted from: MySQL's has milliseconds.
func (s sighting) isOf(r row) bool {
	return s.by == r.by && (s.locked-r.locked()).Abs() <= 2*time.Millisecond
}

// note compares a row with what was last seen of it. If it was locked by another clock before it was
// last seen otherwise, that clock is behind.
func (c *clocks) note(r row) {
	if _, ours := r.owner(); ours {
		r.age = 0 // by the database's clock, wherever that has stepped to
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last, known := c.seen[r.name]
	if known && last.isOf(r) {
		last.at = max(last.at, r.clock)
		c.seen[r.name] = last
		return
	}
	now := sighting{by: r.by, locked: r.locked(), at: r.clock}
	if known && now.locked < last.at-stall {
		now.behind = last.at - now.locked
	}
	for other := range c.seen {
		if len(c.seen) < most || known {
			break
		}
		delete(c.seen, other)
	}
	c.seen[r.name] = now
}

// check returns an error if the row shows that another clock than the database's was used.
func (c *clocks) check(r row) error {
	if _, ours := r.owner(); ours {
		return nil
	}
	c.mu.Lock()
	behind := c.seen[r.name].behind
	c.mu.Unlock()
	how := ""
	switch {
	case r.age < -tolerance:
		how = fmt.Sprintf("%s ahead of", (-r.age).Round(time.Millisecond))
	case behind > 0:
		how = fmt.Sprintf("%s or more behind", behind.Round(time.Millisecond))
	default:
		return nil
	}
	return fmt.Errorf("%w: shedlock: %q was locked by %q with a clock %s the database's, so that either may take "+
		"the lock from a holder: configure ShedLock with usingDbTime()", lease.ErrConfig, r.name, r.by, how)
}
