package table_test

import (
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// A hand-over whose first try had no answer finds that the row does not name the holder any more.
// If the row tells that the holder had lost its lease before, the answer leaves no doubt, so that
// its Unlock can say ErrLost.
func TestAHandOverWithoutAnAnswerHidesNoLossThatIsKnown(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		for _, c := range []struct {
			name  string
			known bool
			then  func(h lease.HandOver)
		}{
			{"taken by another owner", true, func(h lease.HandOver) {
				r.Expire(t, h.From.Key)
				hold(t, r.clean, h.From.Key)
			}},
			{"released by another hand", true, func(h lease.HandOver) { release(t, r.clean, h.From) }},
			{"handed over and released", false, func(h lease.HandOver) { release(t, r.clean, r.handed(t, h)) }},
			{"handed over and passed on", false, func(h lease.HandOver) {
				release(t, r.clean, r.handed(t, h))
				hold(t, r.clean, h.From.Key)
			}},
			{"taken and taken again", false, func(h lease.HandOver) {
				for range 2 {
					r.Expire(t, h.From.Key)
					hold(t, r.clean, h.From.Key)
				}
			}},
		} {
			h := lease.HandOver{From: hold(t, r.clean, c.name), To: request(c.name)}
			c.then(h)
			r.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.LoseReply())))
			got, err := r.store.HandOver(t.Context(), []lease.HandOver{h})
			r.faults.Set(nil)
			if err != nil || got[0].Granted || got[0].Unknown == c.known {
				t.Errorf("%s: got %+v, %v", c.name, got, err)
			}
		}
	})
}

// handed carries a hand-over out.
func (r *rig) handed(t *testing.T, h lease.HandOver) lease.Lease {
	t.Helper()
	got, err := r.clean.HandOver(t.Context(), []lease.HandOver{h})
	if err != nil || !got[0].Granted {
		t.Fatalf("%+v, %v", got, err)
	}
	return lease.Lease{Key: h.From.Key, Owner: h.To.Owner, Token: got[0].Token}
}
