package table_test

import (
	"math"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// The placements below a table's are no cluster's: a key that was put there could not be locked by
// any client.
func TestAKeyIsNotRecalledToAHomeThatNobodyHas(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		for _, placement := range []int{lease.PlacementTransaction, -5, math.MinInt, math.MaxInt16 + 1} {
			ok, err := r.clean.Recall(t.Context(), "k", placement, 3)
			if wantIs(t, err, lease.ErrConfig); ok {
				t.Errorf("it is at placement %d", placement)
			}
		}
		hold(t, r.clean, "k")
	})
}
