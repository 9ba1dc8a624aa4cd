package once_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/once"
)

// A claim is one statement of one transaction, so a pooler in transaction mode makes no difference;
// and the bound on its wait, which is a setting, is left in no other client's session.
func TestDoneOnceThroughPgBouncer(t *testing.T) {
	testdb.PgBouncer.DSN(t) // skips, before there are tables
	r := newRig(t, testdb.Kinds[1].Open(t))
	pooled := &rig{r.Behind(t), r.effects}
	o := pooled.once(t)
	for n := range 3 {
		res, err := o.Do(t.Context(), once.Request{Key: "k"}, pooled.effect("e", "result"))
		if err != nil || string(res.Value) != "result" || res.Replayed != (n > 0) {
			t.Errorf("time %d: %+v, %v", n, res, err)
		}
	}
	r.wantEffects(t, "e", 1)
	for range 20 {
		var left string
		if err := pooled.DB.QueryRowContext(t.Context(), `SHOW lock_timeout`).Scan(&left); err != nil || left != "0" {
			t.Errorf("lock_timeout is %q in a session of others: %v", left, err)
		}
	}
}
