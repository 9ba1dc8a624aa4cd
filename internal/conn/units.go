package conn

import (
	"math"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Micros converts a duration to whole microseconds, the resolution of the databases' clocks. It
// rounds up: a lease is never shorter than asked for, and never zero. The longest duration is
// rounded down, or what remains of it at first would be no less than what remains of a row that has
// no end, a reader group's.
func Micros(d time.Duration) int64 {
	return min(RoundUp(d, time.Microsecond), math.MaxInt64/int64(time.Microsecond))
}

// RoundUp returns how many of unit last for d. It does not add before it divides: that would turn
// the longest duration, which some callers pass for "for ever", into a negative one.
func RoundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// Duration converts microseconds of the database to a duration. It stops at the longest one, so
// that a lease which was ended centuries ago by hand does not come out positive.
func Duration(micros int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	switch {
	case micros > most:
		return math.MaxInt64
	case micros < -most:
		return -math.MaxInt64
	}
	return time.Duration(micros) * time.Microsecond
}

// Bytes returns the owner as a statement parameter.
func Bytes(o lease.Owner) []byte { return o[:] }
