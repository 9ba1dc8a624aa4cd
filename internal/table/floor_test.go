package table_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A key whose row was reaped begins above its floor. If no token is left above it, no statement
// makes the row: it would have a token that no fence takes.
func TestNoRowIsMadeAboveAFloorThatHasRunOut(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, strategy := range []adapter.Strategy{adapter.Update, adapter.Insert} {
			r := newRig(t, e, strategy, 2)
			able := able(t, r.store)
			e.Exec(t, `DELETE FROM {rowlock}`)
			e.Exec(t, `UPDATE {rowlock_floor} SET floor = ?`, int64(lease.MaxToken))
			for name, ask := range map[string]func() (any, error){
				"one":  func() (any, error) { return r.store.Acquire(t.Context(), requests("a")) },
				"two":  func() (any, error) { return r.store.Acquire(t.Context(), requests("a", "b")) },
				"all":  func() (any, error) { return r.store.AcquireAll(t.Context(), requests("a", "b")) },
				"any":  func() (any, error) { return r.store.AcquireAny(t.Context(), requests("a", "b"), 1) },
				"next": func() (any, error) { return r.store.Claim(t.Context(), requests("a")) },
			} {
				if name != "one" && name != "next" && !able {
					continue
				}
				got, err := ask()
				if rows := r.rows(t); len(rows) > 0 {
					t.Errorf("%s: %+v, %v, and there are %v", name, got, err, rows)
				}
				e.Exec(t, `DELETE FROM {rowlock}`)
			}
			e.Exec(t, `UPDATE {rowlock_floor} SET floor = 0`)
		}
	})
}

// The floor of a row whose tokens have run out would be the end of every other key of its bucket.
func TestARowWhoseTokensHaveRunOutIsNotReaped(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		release(t, r.store, hold(t, r.store, "k"))
		before := r.floor(t, "k") // the key that an opening rehearses with may be of this bucket
		e.SetToken(t, "k", lease.MaxToken-1)
		e.Expire(t, "k")
		if _, err := r.store.Sweep(t.Context(), lease.SweepOptions{}); err != nil {
			t.Fatal(err)
		}
		if row := r.row(t, "k"); row.Token != lease.MaxToken-1 || r.floor(t, "k") != before {
			t.Errorf("the row is %+v, and its floor %d, before the sweep %d", row, r.floor(t, "k"), before)
		}
	})
}
