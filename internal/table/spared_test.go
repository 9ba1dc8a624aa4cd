package table_test

import (
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A forced release with Evict has waited for the row. The transaction that has it now may be that
// of a later holder, if it began after the release did: only an older one is ended.
func TestAForcedReleaseEndsNoTransactionThatBeganAfterIt(t *testing.T) {
	onServers(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		l := hold(t, r.store, "k")
		tx, err := e.DB.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback() //nolint:errcheck // it is over by then
		touch := e.SQL(`UPDATE {rowlock} SET note = 'fenced' WHERE {key} = ?`)
		if _, err := tx.ExecContext(t.Context(), touch, []byte("k")); err != nil {
			t.Fatal(err)
		}
		req := lease.ForceRequest{Key: l.Key, By: "me", Reason: "why", ID: lease.NewOwner(), Evict: true}
		ended, err := r.store.Fencing(t.Context(), req, time.Minute)
		wantIs(t, err, lease.ErrBusy)
		if _, err := tx.ExecContext(t.Context(), touch, []byte("k")); err != nil || ended {
			t.Errorf("a transaction that began after the release: ended %t, %v", ended, err)
		}
		endsIt(t, r, req)
		if tx.Commit() == nil {
			t.Error("a transaction that is older than the release was committed")
		}
	})
}

// endsIt asks until a session is ended: while others look too, it is not found at once.
func endsIt(t *testing.T, r *rig, req lease.ForceRequest) {
	t.Helper()
	for began, ended := time.Now(), false; !ended; {
		var err error
		ended, err = r.store.Fencing(t.Context(), req, 0)
		wantIs(t, err, lease.ErrBusy)
		if time.Since(began) > time.Minute {
			t.Fatal(err)
		}
	}
}
