package conn_test

import (
	"context"
	"testing"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
)

// What the connections do is measured without asking them: they may hang.
func TestASetMeasuresItself(t *testing.T) {
	r := newRig(t, 2, func(c *conn.Config[body]) { c.Merge = 8 })
	if m := r.Measure(); m != (adapter.Measures{Connections: 2}) {
		t.Errorf("at rest: %+v", m)
	}
	acquiring, keeping := r.occupy(conn.Acquire, "acquiring"), r.occupy(conn.Release, "keeping")
	if m := r.Measure(); m != (adapter.Measures{Connections: 2, Busy: 2, Batches: 2, Requests: 2}) {
		t.Errorf("with two ops that run: %+v", m)
	}
	r.Go(quick(conn.Release, "r0"))
	last := quick(conn.Release, "r1")
	r.Go(last)
	close(keeping.letGo)
	r.do(last)
	close(acquiring.letGo)
	r.Close()
	m := r.Measure()
	if m != (adapter.Measures{Batches: 3, Requests: 4}) {
		t.Errorf("after a batch of two, closed: %+v", m)
	}
}

// A connection that must be discarded is not open until there is another.
func TestADiscardedConnectionIsNotOpen(t *testing.T) {
	r := newRig(t, 1, nil)
	r.dialer.failAfter(0, errNothing)
	bad := quick(conn.Acquire, "breaks the connection")
	bad.Body.run = func(context.Context) error { return errBroken }
	r.do(bad) // it is answered before its connection is idle
	if m := r.Measure(); m.Connections != 0 {
		t.Errorf("after the loss of the only connection: %+v", m)
	}
	r.dialer.failAfter(0, nil)
	r.do(quick(conn.Acquire, "next"))
	if m := r.Measure(); m.Connections != 1 {
		t.Errorf("after the next: %+v", m)
	}
}
