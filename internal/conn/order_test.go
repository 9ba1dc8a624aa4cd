package conn_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
)

func TestRenewalsGoFirstThenReleasesThenAcquiresEachInOrder(t *testing.T) {
	r := newRig(t, 1, nil)
	busy := r.occupy(conn.Acquire, "busy")
	for _, name := range []string{"acquire 1", "acquire 2", "release 1", "acquire 3", "renew 1", "release 2", "renew 2"} {
		kind := map[string]conn.Kind{"acquire": conn.Acquire, "release": conn.Release, "renew": conn.Renew}[name[:len(name)-2]]
		r.Go(quick(kind, name))
	}
	last := quick(conn.Acquire, "last")
	close(busy.letGo)
	r.do(last)
	r.wantOrder("busy", "renew 1", "renew 2", "release 1", "release 2", "acquire 1", "acquire 2", "acquire 3", "last")
}

// What arrives while a connection works is looked at before anything that has waited longer but
// matters less.
func TestARenewalOvertakesWhatIsPending(t *testing.T) {
	r := newRig(t, 1, nil)
	first := r.occupy(conn.Acquire, "first")
	second := hold(conn.Acquire, "second")
	r.Go(second.op)
	r.Go(quick(conn.Acquire, "third"))
	close(first.letGo)
	r.wait(second.running, "the second acquire")
	r.Go(quick(conn.Renew, "renewal"))
	close(second.letGo)
	r.do(quick(conn.Acquire, "last"))
	r.wantOrder("first", "second", "renewal", "third", "last")
}

func TestTheFirstOfSeveralConnectionsNeverAcquires(t *testing.T) {
	r := newRig(t, 3, nil)
	stuck := []*held{r.occupy(conn.Acquire, "stuck 1"), r.occupy(conn.Acquire, "stuck 2")}
	waiting := quick(conn.Acquire, "waiting")
	r.Go(waiting)
	for i := range 20 { // every connection that may acquire is stuck, and one is left
		r.do(quick(conn.Renew, fmt.Sprintf("renew %d", i)))
		r.do(quick(conn.Release, fmt.Sprintf("release %d", i)))
	}
	if ran := r.order(); slices.Contains(ran, "waiting") {
		t.Error("an acquire ran on the connection that is kept for renewals")
	}
	for _, h := range stuck {
		close(h.letGo)
	}
	r.do(quick(conn.Acquire, "another"))
	keeper := r.on("renew 0")
	for _, name := range []string{"stuck 1", "stuck 2", "waiting", "another"} {
		if r.on(name) == keeper {
			t.Errorf("%s ran on the connection that is kept for renewals", name)
		}
	}
}

// Every connection that is idle is a connection that starts: as many ops as there are connections
// meet in the middle, again and again.
func TestAnIdleConnectionStartsAtOnce(t *testing.T) {
	const conns = 4
	r := newRig(t, conns, nil)
	for round := range 50 {
		all := make([]*held, conns)
		for i := range all {
			all[i] = hold(conn.Release, fmt.Sprintf("%d/%d", round, i))
			r.Go(all[i].op)
		}
		for _, h := range all {
			r.wait(h.running, "every connection to run")
		}
		for _, h := range all {
			close(h.letGo)
		}
	}
}

func TestPendingOpsAreMergedUpToTheLimit(t *testing.T) {
	r := newRig(t, 1, func(c *conn.Config[body]) { c.Merge = 3 })
	busy := r.occupy(conn.Release, "busy")
	for i := range 5 {
		r.Go(quick(conn.Acquire, fmt.Sprintf("a%d", i)))
	}
	r.wantIs(r.Do(leaveOnceSubmitted(), quick(conn.Acquire, "withdrawn")), conn.ErrWithdrawn, context.Canceled)
	r.Go(quick(conn.Acquire, "a5"))
	r.Go(quick(conn.Release, "r0"))
	r.Go(quick(conn.Release, "r1"))
	r.Go(quick(conn.Renew, "w0"))
	r.Go(quick(conn.Renew, "w1"))
	last := quick(conn.Acquire, "last")
	r.Go(last)
	close(busy.letGo)
	r.do(last)
	r.wantBatches("busy", "w0 w1", "r0 r1 a0", "a1 a2 a3", "a4 a5 last")
}

// A keeper connection takes releases with releases, and leaves acquires to others.
func TestAKeeperMergesNoAcquires(t *testing.T) {
	r := newRig(t, 2, func(c *conn.Config[body]) { c.Merge = 8 })
	acquiring := r.occupy(conn.Acquire, "acquiring")
	keeping := r.occupy(conn.Release, "keeping")
	for _, name := range []string{"a0", "a1"} {
		r.Go(quick(conn.Acquire, name))
	}
	r.Go(quick(conn.Release, "r0"))
	released := quick(conn.Release, "r1")
	r.Go(released)
	close(keeping.letGo)
	r.do(released)
	acquired := quick(conn.Acquire, "a2")
	r.Go(acquired)
	close(acquiring.letGo)
	r.do(acquired)
	r.wantBatches("acquiring", "keeping", "r0 r1", "a0 a1 a2")
}

func TestAnOpThatIsToBeAloneIsAlone(t *testing.T) {
	r := newRig(t, 1, func(c *conn.Config[body]) { c.Merge = 8 })
	busy := r.occupy(conn.Release, "busy")
	for _, name := range []string{"a0", "a1"} {
		r.Go(quick(conn.Acquire, name))
	}
	alone := quick(conn.Acquire, "alone")
	alone.Alone = true
	r.Go(alone)
	last := quick(conn.Acquire, "last")
	r.Go(last)
	close(busy.letGo)
	r.do(last)
	r.wantBatches("busy", "a0 a1", "alone", "last")
}

// What is put off is run next, by itself; and if its caller has left meanwhile, never.
func TestWhatIsPutOffIsRunNext(t *testing.T) {
	r := newRig(t, 1, func(c *conn.Config[body]) { c.Merge = 8 })
	busy := r.occupy(conn.Release, "busy")
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	left := quick(conn.Acquire, "left")
	var late *op
	late = newOp(conn.Acquire, body{name: "late", run: func(context.Context) error {
		if !late.Alone {
			late.Again(true)
			left.Again(true)
			leave()
			r.wantIs(<-gone, conn.ErrOrphaned)
		}
		return nil
	}})
	last := quick(conn.Acquire, "last")
	for _, o := range []*op{late, left, last} {
		r.Go(o)
	}
	go func() { gone <- r.Do(ctx, left) }()
	after := quick(conn.Release, "after")
	close(busy.letGo)
	r.do(last)
	r.do(late)
	r.do(after)
	r.wantBatches("busy", "late left last", "late", "after")
}
