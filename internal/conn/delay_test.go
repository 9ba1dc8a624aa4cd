package conn_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
)

const (
	gate  = 32 // how many ops wait for a batch at most
	share = 12 // what crowded has running, and so half of it and of as many that wait
)

// crowded returns connections with a gate, of which one acquiring connection has a batch of n that
// runs until letGo is closed. The others are idle.
func crowded(t *testing.T, conns, n int) (r *rig, letGo chan struct{}) {
	r = newRig(t, conns, func(c *conn.Config[body]) { c.Merge, c.Gather = 512, gate })
	stuck := make([]*held, conns-1)
	for i := range stuck {
		stuck[i] = r.occupy(conn.Acquire, fmt.Sprint("first ", i))
	}
	batch := hold(conn.Acquire, "held 0")
	r.Go(batch.op)
	for i := range n - 1 {
		r.Go(quick(conn.Acquire, fmt.Sprint("held ", i+1)))
	}
	for _, h := range stuck {
		close(h.letGo)
	}
	r.wait(batch.running, "the batch")
	return r, batch.letGo
}

// The batch that runs is about to end, and takes what has come meanwhile along.
func TestInACrowdWhatComesWaitsForTheBatchThatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, letGo := crowded(t, 4, share)
		for i := range share - 1 {
			r.Go(quick(conn.Acquire, fmt.Sprint("next ", i)))
		}
		synctest.Wait()
		if ran := r.order(); slices.Contains(ran, "next 0") {
			t.Errorf("another connection has begun: %v", ran)
		}
		close(letGo)
		synctest.Wait()
		if last := r.batches[len(r.batches)-1]; len(last) != share-1 {
			t.Errorf("what waited ran as %v, want one batch", last)
		}
	})
}

func TestHalfOfWhatRunsAndWaitsWaitsForNoBatch(t *testing.T) {
	for _, many := range []struct{ running, waiting int }{{share, share}, {10 * gate, gate}} {
		synctest.Test(t, func(t *testing.T) {
			r, letGo := crowded(t, 4, many.running)
			for i := range many.waiting - 1 {
				r.Go(quick(conn.Acquire, fmt.Sprint("next ", i)))
			}
			synctest.Wait()
			if ran := r.order(); slices.Contains(ran, "next 0") {
				t.Errorf("%d run beside %d: %v", many.waiting-1, many.running, ran)
			}
			r.Go(quick(conn.Acquire, "last"))
			synctest.Wait()
			if ran := r.order(); !slices.Contains(ran, "next 0") {
				t.Errorf("%d wait for %d: %v", many.waiting, many.running, ran)
			}
			close(letGo)
		})
	}
}

// A connection that hangs holds up the first that come, for a moment, and then nothing any more.
func TestWhatIsHeldBackForLongRunsBesideTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, letGo := crowded(t, 4, share)
		for i := range 3 {
			name := fmt.Sprint("next ", i)
			began := time.Now()
			r.do(quick(conn.Acquire, name))
			if took := time.Since(began); took > 10*time.Millisecond || (took > 0) != (i == 0) {
				t.Errorf("%s was held back for %s", name, took)
			}
		}
		close(letGo)
	})
}

func TestRenewalsAndWhatRunsAloneAreNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, letGo := crowded(t, 4, share)
		began := time.Now()
		r.do(quick(conn.Renew, "renewal"))
		alone := quick(conn.Acquire, "alone")
		alone.Alone = true
		r.Go(alone) // as part of many, and not on an idle connection at once
		r.do(alone)
		if took := time.Since(began); took > 0 {
			t.Errorf("they took %s", took)
		}
		close(letGo)
	})
}

// What a connection runs alone may be a listing of a million rows.
func TestNothingWaitsForWhatRunsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, func(c *conn.Config[body]) { c.Merge, c.Gather = 512, gate })
		long := hold(conn.Acquire, "long")
		long.op.Alone = true
		r.Go(long.op)
		r.wait(long.running, "what runs alone")
		began := time.Now()
		last := quick(conn.Acquire, "last")
		for i := range 12 {
			r.Go(quick(conn.Acquire, fmt.Sprint(i)))
		}
		r.do(last)
		if took := time.Since(began); took > 0 {
			t.Errorf("they took %s", took)
		}
		close(long.letGo)
	})
}

// Few ops run sooner side by side.
func TestWithoutACrowdEveryIdleConnectionBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, func(c *conn.Config[body]) { c.Merge, c.Gather = 512, gate })
		began := time.Now()
		all := make([]*held, 3)
		for i := range all {
			all[i] = r.occupy(conn.Acquire, fmt.Sprint(i))
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the third began after %s", took)
		}
		for _, h := range all {
			close(h.letGo)
		}
	})
}
