package table_test

import (
	"math"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A row that was dead "for less than nothing" is one that will be dead: it is held.
func TestASweepWithANegativeRetentionIsRefused(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		l := hold(t, r.clean, "k")
		for _, d := range []time.Duration{-1, -time.Hour, math.MinInt64} {
			n, err := r.clean.Sweep(t.Context(), lease.SweepOptions{Retention: d})
			if wantIs(t, err, lease.ErrConfig); n != 0 {
				t.Errorf("a retention of %s: %d rows are removed", d, n)
			}
		}
		if got := r.row(t, "k"); got.Lease != l || !got.Held {
			t.Errorf("the row is %+v, want it held by %+v", got, l)
		}
	})
}
