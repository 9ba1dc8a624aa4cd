package table_test

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// An audit must not read through a pinned connection that has slept through the beginning of an
// era: that may be at an old primary, which still has the moves that the new one has forgotten.
// Other reads go on.
func TestAnAuditReadsNoServerOfAnEarlierEra(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 2)
		if e.Dialect.Connections() == 1 {
			return // the only pinned connection has learned it
		}
		e.ForgetEras(t)
		r.keeperLearns(t)
		look := func(ctx context.Context) (connects int) {
			t.Helper()
			r.log.Reset()
			if _, err := r.store.Inspect(ctx, lease.Filter{Keys: []string{"k"}}); err != nil {
				t.Fatal(err)
			}
			return r.dials()
		}
		if n := look(t.Context()); n != 0 {
			t.Errorf("a read of a viewer has made %d connections", n)
		}
		for _, want := range []int{1, 0} {
			if n := look(adapter.ReadNewest(t.Context())); n != want {
				t.Errorf("an audit's read has made %d connections, want %d", n, want)
			}
		}
	})
}

// keeperLearns has the pinned connection that does not grant connect anew, while the other is busy.
func (r *rig) keeperLearns(t *testing.T) {
	t.Helper()
	before, busy := r.store.Era(), faultdb.NewGate()
	r.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Any(
		faultdb.Nth(1, faultdb.Block(busy)), faultdb.Nth(2, faultdb.FailBeforeSend()))))
	read := make(chan error, 1)
	go func() {
		_, err := r.store.Inspect(context.Background(), lease.Filter{Keys: []string{"k"}})
		read <- err
	}()
	<-busy.Arrived()
	_, err := r.store.Release(t.Context(), []lease.Lease{{Key: "nobody's", Owner: lease.NewOwner()}})
	r.faults.Set(nil)
	busy.Release()
	if failed := <-read; err != nil || failed != nil || r.store.Era() <= before {
		t.Fatalf("the era was %d and is %d: %v, %v", before, r.store.Era(), err, failed)
	}
}
