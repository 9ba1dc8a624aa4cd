package lane_test

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/seam"
)

// What the lanes do is measured without asking them: they may hang.
func TestASetMeasuresItself(t *testing.T) {
	r := newRig(t, 2, func(c *lane.Config[body]) { c.Merge = 8 })
	if m := r.Measure(); m != (seam.Measures{Lanes: 2}) {
		t.Errorf("at rest: %+v", m)
	}
	acquiring, keeping := r.occupy(lane.Acquire, "acquiring"), r.occupy(lane.Release, "keeping")
	if m := r.Measure(); m != (seam.Measures{Lanes: 2, Busy: 2, Batches: 2, Requests: 2}) {
		t.Errorf("with two ops that run: %+v", m)
	}
	r.Go(quick(lane.Release, "r0"))
	last := quick(lane.Release, "r1")
	r.Go(last)
	close(keeping.letGo)
	r.do(last)
	close(acquiring.letGo)
	r.Close()
	m := r.Measure()
	if m != (seam.Measures{Batches: 3, Requests: 4}) {
		t.Errorf("after a batch of two, closed: %+v", m)
	}
}

// A connection that must be discarded is not open until there is another.
func TestADiscardedConnectionIsNotOpen(t *testing.T) {
	r := newRig(t, 1, nil)
	r.dialer.failAfter(0, errNothing)
	bad := quick(lane.Acquire, "breaks the connection")
	bad.Body.run = func(context.Context) error { return errBroken }
	r.do(bad) // it is answered before its lane is idle
	if m := r.Measure(); m.Lanes != 0 {
		t.Errorf("after the loss of the only connection: %+v", m)
	}
	r.dialer.failAfter(0, nil)
	r.do(quick(lane.Acquire, "next"))
	if m := r.Measure(); m.Lanes != 1 {
		t.Errorf("after the next: %+v", m)
	}
}
