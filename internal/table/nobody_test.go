package table_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// What has no holder cannot be released or handed over, whether it is asked for by itself or
// together with others.
func TestNobodyGivesNothingBackAndNothingAway(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		expired := hold(t, r.clean, "expired")
		r.Expire(t, "expired")
		release(t, r.clean, hold(t, r.clean, "free"))
		nobody := []lease.Lease{{Key: "expired"}, {Key: "free"}, {Key: "absent"}}
		var over []lease.HandOver
		for _, l := range nobody {
			over = append(over, lease.HandOver{From: l, To: lease.AcquireRequest{Key: l.Key, Owner: lease.NewOwner(), TTL: ttl}})
		}
		for _, n := range []int{1, 3} {
			released, err := r.clean.Release(t.Context(), nobody[:n])
			for i, a := range released {
				if !a.Gone || a.Err != nil || err != nil {
					t.Errorf("released %q of %d: %+v, %v, want it gone", nobody[i].Key, n, a, err)
				}
			}
			given, err := r.clean.HandOver(t.Context(), over[:n])
			for i, a := range given {
				if a.Granted || a.Err != nil || err != nil {
					t.Errorf("given away %q of %d: %+v, %v, want it not granted", nobody[i].Key, n, a, err)
				}
			}
		}
		if got := r.row(t, "expired"); got.Lease != expired {
			t.Errorf("the row is %+v, want %+v", got, expired)
		}
	})
}
