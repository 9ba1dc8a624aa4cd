package table_test

import (
	"math"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// As many as there are is what the largest number asks for.
func TestTheLargestLimitsAreLimits(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, sqlstore.Update, 2)
		release(t, r.clean, hold(t, r.clean, "k"))
		for _, f := range []lease.Filter{{Limit: math.MaxInt}, {Limit: math.MaxInt, Keys: []string{"k"}}} {
			if rows, err := r.clean.Inspect(t.Context(), f); err != nil || len(rows) != 1 {
				t.Errorf("%+v: %+v, %v, want one row", f, rows, err)
			}
		}
		if n, err := r.clean.Sweep(t.Context(), lease.SweepOptions{Batch: math.MaxInt}); n != 1 || err != nil {
			t.Errorf("swept %d, %v, want 1", n, err)
		}
	})
}
