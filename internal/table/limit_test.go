package table_test

import (
	"math"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// As many as there are is what the largest number asks for.
func TestTheLargestLimitsAreLimits(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
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

// A tool that removes the tables of limits and makes them anew leaves the slots, which are rows of
// another table.
func TestALimitThatIsMadeAnewCountsTheSlotsAboveIt(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		five, three := lease.Limit{Name: "s", Slots: 5}, lease.Limit{Name: "s", Slots: 3}
		takes := func(l lease.Limit, n int, slots ...int) (granted []lease.Lease) {
			t.Helper()
			if _, err := r.clean.MakeLimit(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			reqs := slotsOf(l, slots...)
			answers, err := r.clean.AcquireWithin(t.Context(), l, reqs, n)
			if err != nil {
				t.Fatal(err)
			}
			for i, a := range answers {
				if a.Granted {
					granted = append(granted, lease.Lease{Key: reqs[i].Key, Owner: reqs[i].Owner, Token: a.Token})
				}
			}
			return granted
		}
		all := takes(five, 5, 0, 1, 2, 3, 4)
		e.Exec(t, `DELETE FROM {rowlock_limit}`)
		for _, l := range all[:3] {
			release(t, r.clean, l)
		}
		if got := takes(three, 2, 0, 1, 2); len(got) > 0 {
			t.Errorf("a limit of 3 has granted %d slots beside 2 that are held", len(got))
		}
		if got := takes(three, 1, 0, 1, 2); len(got) != 1 {
			t.Errorf("a limit of 3 has granted %d slots beside 2 that are held, want the third", len(got))
		}
	})
}
