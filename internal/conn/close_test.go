package conn_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
)

// isOne reports whether err is want and not other.
func isOne(err, want, other error) bool { return errors.Is(err, want) && !errors.Is(err, other) }

func TestCloseRunsWhatIsPendingAndReturnsTheConnections(t *testing.T) {
	r := newRig(t, 2, nil)
	busy := r.occupy(conn.Acquire, "busy")
	keeper := r.occupy(conn.Release, "keeper")
	for i := range 5 {
		r.Go(quick(conn.Acquire, fmt.Sprint(i)))
	}
	closed := make(chan struct{})
	go func() { r.Close(); close(closed) }()
	for r.Go(quick(conn.Acquire, "before Close")) { // until Close has shut the door
		time.Sleep(time.Millisecond)
	}
	select {
	case <-closed:
		t.Fatal("Close returned while ops were running")
	default:
	}
	close(keeper.letGo)
	close(busy.letGo)
	r.wait(closed, "Close")
	ran := make(map[string]bool)
	for _, name := range r.order() {
		ran[name] = true
	}
	for i := range 5 {
		if !ran[fmt.Sprint(i)] {
			t.Errorf("op %d was pending when the set was closed and did not run", i)
		}
	}
	wantConnections(t, r, 2)
}

func wantConnections(t *testing.T, r *rig, opened int64) {
	t.Helper()
	if o, c := r.dialer.opened.Load(), r.dialer.closed.Load(); o != opened || c != opened {
		t.Errorf("%d connections were opened and %d closed, want %d of each", o, c, opened)
	}
	if s := r.db.Stats(); s.InUse != 0 || s.OpenConnections != 0 {
		t.Errorf("the pool has %d connections, %d in use, want none: a connection's settings must not reach the application", s.OpenConnections, s.InUse)
	}
}

func TestAClosedSetRefuses(t *testing.T) {
	r := newRig(t, 2, nil)
	r.Close()
	r.wantIs(r.Do(t.Context(), quick(conn.Renew, "late")), conn.ErrClosed)
	if r.Go(quick(conn.Release, "late")) {
		t.Error("Go took an op after Close")
	}
	r.wantOrder()
	r.Close() // twice is harmless
}

func TestABrokenConnectionIsReplaced(t *testing.T) {
	r := newRig(t, 1, nil)
	broken := newOp(conn.Acquire, body{name: "breaks", run: func(context.Context) error { return errBroken }})
	r.do(broken)
	r.wantIs(broken.Err, errBroken)
	after := quick(conn.Acquire, "after")
	r.do(after)
	r.wantIs(after.Err, nil)
	if r.on("breaks") == r.on("after") {
		t.Error("a broken session was used again")
	}
	if n := r.setups.Load(); n != 2 {
		t.Errorf("%d sessions were set up, want 2", n)
	}
	r.Close()
	wantConnections(t, r, 2)
}

// An op for which no connection can be had has certainly not been sent; the next one tries to
// connect again.
func TestAnOpThatFoundNoConnectionWasNotSent(t *testing.T) {
	r := newRig(t, 1, nil)
	r.do(newOp(conn.Acquire, body{name: "breaks", run: func(context.Context) error { return errBroken }}))
	down := errors.New("server down")
	r.dialer.failAfter(0, down)
	lost := quick(conn.Acquire, "no connection")
	r.do(lost)
	r.wantIs(lost.Err, down)
	if !errors.As(lost.Err, new(conn.NotSent)) {
		t.Errorf("%v is not marked as not sent", lost.Err)
	}
	r.dialer.failAfter(0, nil)
	back := quick(conn.Acquire, "back")
	r.do(back)
	r.wantIs(back.Err, nil)
	r.wantOrder("breaks", "back")
}

func TestAConnectionWhoseSetupFailsIsClosed(t *testing.T) {
	var fail error
	r := newRig(t, 1, func(c *conn.Config[body]) {
		c.Setup = func(context.Context, *conn.Session) error { return fail }
	})
	r.do(newOp(conn.Acquire, body{name: "breaks", run: func(context.Context) error { return errBroken }}))
	fail = errNothing
	o := quick(conn.Acquire, "no setup")
	r.do(o)
	r.wantIs(o.Err, errNothing)
	r.Close()
	wantConnections(t, r, 2)
}

func TestOpenThatFailsLeavesNothingBehind(t *testing.T) {
	r := &rig{TB: t, dialer: &dialer{}}
	r.db = sql.OpenDB(r.dialer)
	defer r.db.Close()
	r.dialer.failAfter(2, errNothing)
	_, err := conn.Open(t.Context(), r.config(4))
	r.wantIs(err, errNothing)
	wantConnections(t, r, 2)
}

// A pool that is too small is found by Open, and not by the first renewal.
func TestOpenConnectsEveryConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // where its two connections are made before its time is over
		r := &rig{TB: t, dialer: &dialer{}}
		r.db = sql.OpenDB(r.dialer)
		defer r.db.Close()
		r.db.SetMaxOpenConns(2)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := conn.Open(ctx, r.config(3))
		r.wantIs(err, context.DeadlineExceeded)
		wantConnections(t, r, 2)
	})
}

func TestAnOpHasTheTimeoutOfItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *conn.Config[body]) { c.Timeout = 50 * time.Millisecond })
		o := newOp(conn.Acquire, body{name: "slow", run: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		r.do(o)
		if r.wantIs(o.Err, adapter.ErrLate); errors.Is(o.Err, context.DeadlineExceeded) {
			t.Errorf("%v is a context's, though the caller has none that ends", o.Err)
		}
	})
}
