package watchdog

import (
	"math"
	"time"
)

// Moments on this process's monotonic clock are counted from here: a time.Time is three times as
// large, and a lease has four. It is so long ago that each is above 0, also in a bubble of
// testing/synctest, whose clock begins in 2000.
var began = time.Now().Add(-50 * 365 * 24 * time.Hour)

// never is far enough away for an event that must not come, and not so far that sums overflow.
const never time.Duration = math.MaxInt64 / 2

// momentOf counts from now, and not from began: of a wall clock that was set since, it is right.
func momentOf(after time.Duration) time.Time {
	now := time.Now()
	return now.Add(after - now.Sub(began))
}
