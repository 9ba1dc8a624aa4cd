package lane_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rowlockdb/rowlock/internal/lane"
)

func TestRenewalsGoFirstThenReleasesThenAcquiresEachInOrder(t *testing.T) {
	r := newRig(t, 1, nil)
	busy := r.occupy(lane.Acquire, "busy")
	for _, name := range []string{"acquire 1", "acquire 2", "release 1", "acquire 3", "renew 1", "release 2", "renew 2"} {
		kind := map[string]lane.Kind{"acquire": lane.Acquire, "release": lane.Release, "renew": lane.Renew}[name[:len(name)-2]]
		r.Go(quick(kind, name))
	}
	last := quick(lane.Acquire, "last")
	close(busy.letGo)
	r.do(last)
	r.wantOrder("busy", "renew 1", "renew 2", "release 1", "release 2", "acquire 1", "acquire 2", "acquire 3", "last")
}

// What arrives while a lane works is looked at before anything that has waited longer but matters less.
func TestARenewalOvertakesWhatIsPending(t *testing.T) {
	r := newRig(t, 1, nil)
	first := r.occupy(lane.Acquire, "first")
	second := hold(lane.Acquire, "second")
	r.Go(second.op)
	r.Go(quick(lane.Acquire, "third"))
	close(first.letGo)
	r.wait(second.running, "the second acquire")
	r.Go(quick(lane.Renew, "renewal"))
	close(second.letGo)
	r.do(quick(lane.Acquire, "last"))
	r.wantOrder("first", "second", "renewal", "third", "last")
}

func TestTheFirstOfSeveralLanesNeverAcquires(t *testing.T) {
	r := newRig(t, 3, nil)
	stuck := []*held{r.occupy(lane.Acquire, "stuck 1"), r.occupy(lane.Acquire, "stuck 2")}
	waiting := quick(lane.Acquire, "waiting")
	r.Go(waiting)
	for i := range 20 { // every lane that may acquire is stuck, and one is left
		r.do(quick(lane.Renew, fmt.Sprintf("renew %d", i)))
		r.do(quick(lane.Release, fmt.Sprintf("release %d", i)))
	}
	if ran := r.order(); slices.Contains(ran, "waiting") {
		t.Error("an acquire ran on the lane that is kept for renewals")
	}
	for _, h := range stuck {
		close(h.letGo)
	}
	r.do(quick(lane.Acquire, "another"))
	keeper := r.on("renew 0")
	for _, name := range []string{"stuck 1", "stuck 2", "waiting", "another"} {
		if r.on(name) == keeper {
			t.Errorf("%s ran on the lane that is kept for renewals", name)
		}
	}
}

// Every lane that is idle is a lane that starts: as many ops as there are lanes meet in the middle, again and again.
func TestAnIdleLaneStartsAtOnce(t *testing.T) {
	const lanes = 4
	r := newRig(t, lanes, nil)
	for round := range 50 {
		all := make([]*held, lanes)
		for i := range all {
			all[i] = hold(lane.Release, fmt.Sprintf("%d/%d", round, i))
			r.Go(all[i].op)
		}
		for _, h := range all {
			r.wait(h.running, "every lane to run")
		}
		for _, h := range all {
			close(h.letGo)
		}
	}
}

func TestOpsOfOneKindAreMergedUpToTheLimit(t *testing.T) {
	r := newRig(t, 1, func(c *lane.Config[body]) { c.Merge[lane.Acquire] = 3 })
	busy := r.occupy(lane.Release, "busy")
	for i := range 5 {
		r.Go(quick(lane.Acquire, fmt.Sprintf("a%d", i)))
	}
	r.wantIs(r.Do(leaveOnceSubmitted(), quick(lane.Acquire, "withdrawn")), lane.ErrWithdrawn, context.Canceled)
	r.Go(quick(lane.Acquire, "a5"))
	r.Go(quick(lane.Release, "r0"))
	r.Go(quick(lane.Release, "r1"))
	close(busy.letGo)
	r.do(quick(lane.Acquire, "last"))
	want := [][]string{{"busy"}, {"r0"}, {"r1"}, {"a0", "a1", "a2"}, {"a3", "a4", "a5"}, {"last"}}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.EqualFunc(r.batches, want, slices.Equal) {
		t.Errorf("ran %q, want %q", r.batches, want)
	}
}
