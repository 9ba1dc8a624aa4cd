package conn_test

import (
	"math"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// A lease as long as can be must not come out negative, which would be one that has run out
// already, nor as one without an end, which only a reader group has.
func TestTheLongestDurationStaysOne(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]int64{
		math.MaxInt64: math.MaxInt64 / 1000, math.MaxInt64 - 807: math.MaxInt64 / 1000, 1: 1, 999: 1, 1000: 1, 1001: 2, time.Hour: 3600e6,
	} {
		if got := conn.Micros(d); got != want {
			t.Errorf("Micros(%d) = %d, want %d", d, got, want)
		}
		if back := conn.Duration(want); back < min(d, math.MaxInt64-807) || back == math.MaxInt64 {
			t.Errorf("Duration(%d) = %d, for %d", want, back, d)
		}
	}
	if ms := conn.RoundUp(math.MaxInt64, time.Millisecond); conn.Duration(ms*1000) == math.MaxInt64 {
		t.Errorf("%d ms have no end", ms)
	}
	if d := conn.Duration(-5); d != -5*time.Microsecond {
		t.Errorf("Duration(-5) = %v", d)
	}
}

// A row whose expiry was set by hand to the beginning of all times has expired, for whatever reads
// it.
func TestALeaseThatEndedCenturiesAgoIsOver(t *testing.T) {
	t.Parallel()
	for _, micros := range []int64{-math.MaxInt64 / 1000, -math.MaxInt64/1000 - 1, -1000 * 366 * 24 * 3600e6, math.MinInt64} {
		d := conn.Duration(micros)
		if d > -292*365*24*time.Hour {
			t.Errorf("Duration(%d) = %v", micros, d)
		}
		row := sqlstore.Row{Exists: true, Here: true, Owner: lease.NewOwner(), Token: 7, Holder: lease.Holder{Remaining: d}}
		if a := row.Acquired(lease.NewOwner()); a.Outcome != sqlstore.Possible {
			t.Errorf("a row that expired %d µs ago is answered %+v", -micros, a)
		}
	}
}
