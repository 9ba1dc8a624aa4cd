package hazard

import (
	"testing"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A retention below 0 would count held rows as dead, and the next caller would get a second lock
// on the key.
func TestNoSweepRemovesWhatIsHeld(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		store, err := rowlock.OpenTable(e.DB, e.Dialect, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		clienttest.Another(t, store, "k", servertest.LongTTL)
		removed, err := store.Sweep(t.Context(), lease.SweepOptions{Retention: -2 * servertest.LongTTL})
		clienttest.WantIs(t, "Sweep", err, rowlock.ErrConfig)
		if removed != 0 || !clienttest.IsHeld(t, store, "k") {
			t.Errorf("removed %d, held %t", removed, clienttest.IsHeld(t, store, "k"))
		}
	})
}
