package table_test

import (
	"fmt"
	"testing"

	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A sweep reads pages of 1,000 rows in the order of keys, and goes on behind the last of each.
func TestASweepReadsEveryPage(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, sqlstore.Update, 2)
		keys := []string{"a", "z"}
		for i := range 2100 {
			keys = append(keys, fmt.Sprintf("b/%04d", i))
		}
		if _, err := r.clean.Acquire(t.Context(), requests(keys...)); err != nil {
			t.Fatal(err)
		}
		dead := []string{"a", "b/1050", "z"}
		for _, key := range dead {
			e.Expire(t, key)
		}
		removed, err := r.store.Sweep(t.Context(), lease.SweepOptions{})
		if removed != int64(len(dead)) || err != nil {
			t.Errorf("a sweep removed %d rows, %v; want %q", removed, err, dead)
		}
	})
}
