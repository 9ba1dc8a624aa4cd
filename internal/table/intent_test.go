package table_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A caller that waits for a shared key exclusively may be killed. Its intent ends by itself, and
// members are let in again.
func TestAnIntentThatHasExpiredRefusesNoMember(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		keys := []string{"a", "b", "c"}
		for _, key := range keys {
			made, err := r.store.Downgrade(t.Context(), []lease.RenewRequest{{Lease: hold(t, r.store, key), TTL: ttl}})
			if err != nil || made[0].Outcome != lease.Extended {
				t.Fatalf("downgrade: %+v, %v", made, err)
			}
		}
		wantIs(t, r.store.Intend(t.Context(), lease.NewOwner(), keys, time.Minute), nil)
		share := func(want bool, keys ...string) {
			t.Helper()
			got, err := r.store.Share(t.Context(), requests(keys...))
			wantIs(t, err, nil)
			for i, a := range got {
				if a.Granted != want {
					t.Errorf("%s: %+v, want it granted: %t", keys[i], a, want)
				}
			}
		}
		share(false, "a")
		share(false, "b", "c")
		e.Exec(t, `UPDATE {rowlock_member} SET expires_at = {now} - {second} WHERE reader_group = ?`, make([]byte, 16))
		share(true, "a")
		share(true, "b", "c")
	})
}
