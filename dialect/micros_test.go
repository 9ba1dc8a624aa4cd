package dialect_test

import (
	"math"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/dialect"
)

// A lease as long as can be must not come out negative, which would be one that has run out already.
func TestTheLongestDurationStaysOne(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		math.MaxInt64: math.MaxInt64/1000 + 1, 1: 1, 999: 1, 1000: 1, 1001: 2, time.Hour: 3600e6,
	} {
		if got := dialect.Micros(d); got != want {
			t.Errorf("Micros(%d) = %d, want %d", d, got, want)
		}
		if back := dialect.Duration(want); back < d {
			t.Errorf("Duration(%d) = %d, less than %d", want, back, d)
		}
	}
	if d := dialect.Duration(-5); d != -5*time.Microsecond {
		t.Errorf("Duration(-5) = %v", d)
	}
}
