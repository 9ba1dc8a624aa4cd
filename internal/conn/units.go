package conn

import (
	"math"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Micros converts a duration to whole microseconds, the resolution of the databases' clocks. It
// rounds up: a lease is never shorter than asked for, and never zero.
func Micros(d time.Duration) int64 { return RoundUp(d, time.Microsecond) }

// RoundUp returns how many of unit last for d. It does not add before it divides: that would turn
// the longest duration, which some callers pass for "for ever", into a negative one. That one it
// rounds down: what remains of it must be less than of a row without an end, a reader group's.
func RoundUp(d, unit time.Duration) int64 {
	n := int64(d / unit)
	if d%unit > 0 && n < math.MaxInt64/int64(unit) {
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
