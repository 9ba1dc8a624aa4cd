package conn_test

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
)

func local(c *conn.Config[body]) {
	c.Setup = func(_ context.Context, s *conn.Session) error { s.Local = true; return nil }
}

func goroutine() string {
	buf := make([]byte, 64)
	id, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(id)
}

// whenIdle returns when an op is run by its caller, as any is that finds a connection idle; bounded
// says whether it had a deadline then.
func (r *rig) whenIdle() (bounded bool) {
	r.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		var on string
		r.do(newOp(conn.Acquire, body{name: "op", run: func(ctx context.Context) error {
			on = goroutine()
			_, bounded = ctx.Deadline()
			return nil
		}}))
		if on == goroutine() {
			return bounded
		}
	}
	r.Fatal("no op was run by its caller")
	return false
}

// An op is run by its caller, if a connection is idle; within the connection's timeout, unless it
// goes no further than this machine's disk.
func TestAnOpIsRunByItsCaller(t *testing.T) {
	if newRig(t, 1, local).whenIdle() {
		t.Error("a local op had a deadline")
	}
	if !newRig(t, 1, nil).whenIdle() {
		t.Error("an op had no deadline")
	}
}

func TestACallerWhoLeavesEndsWhatHeRunsHimself(t *testing.T) {
	r := newRig(t, 1, func(c *conn.Config[body]) { c.Timeout = time.Hour })
	ctx, leave := context.WithCancel(t.Context())
	o := newOp(conn.Acquire, body{name: "op", run: func(ctx context.Context) error {
		leave()
		<-ctx.Done()
		return ctx.Err()
	}})
	r.whenIdle()
	r.wantIs(r.Do(ctx, o), nil)
	r.wantIs(o.Err, context.Canceled)
}

// What comes while a caller has the connection is run by the connection itself, renewals first.
func TestABorrowedConnectionGoesOnWithWhatCameMeanwhile(t *testing.T) {
	r := newRig(t, 1, local)
	first := hold(conn.Acquire, "first")
	done := make(chan struct{})
	go func() { _ = r.Do(t.Context(), first.op); close(done) }()
	r.wait(first.running, "first to run")
	last := hold(conn.Release, "release")
	r.Go(quick(conn.Acquire, "acquire"))
	r.Go(last.op)
	r.Go(quick(conn.Renew, "renew"))
	close(first.letGo)
	r.wait(done, "first to end")
	r.wait(last.running, "release to run")
	close(last.letGo)
	r.do(quick(conn.Acquire, "end"))
	r.wantOrder("first", "renew", "release", "acquire", "end")
}

func TestSettleWaitsForABorrowedConnection(t *testing.T) {
	r := newRig(t, 1, local)
	h := hold(conn.Acquire, "op")
	go func() { _ = r.Do(t.Context(), h.op) }()
	r.wait(h.running, "op to run")
	settled := make(chan struct{})
	go func() { r.Settle(t.Context()); close(settled) }()
	select {
	case <-settled:
		t.Error("Settle returned while an op was running")
	case <-time.After(20 * time.Millisecond):
	}
	close(h.letGo)
	r.wait(settled, "Settle")
}

// Many callers, few connections, and in the end a Close: every op that was taken on is run once and
// answered.
func TestBorrowedConnectionsLoseNothing(t *testing.T) {
	for _, conns := range []int{1, 3} {
		r := newRig(t, conns, local)
		var ran, answered, refused atomic.Int64
		var wg sync.WaitGroup
		for n := range 16 {
			wg.Go(func() {
				for i := range 500 {
					o := newOp(conn.Kind((n+i)%3), body{name: "op", run: func(context.Context) error { ran.Add(1); return nil }})
					if err := r.Do(t.Context(), o); err == nil {
						answered.Add(1)
					} else {
						r.wantIs(err, conn.ErrClosed)
						refused.Add(1)
					}
				}
			})
		}
		wg.Go(func() {
			for ran.Load() < 4000 {
				time.Sleep(time.Millisecond)
			}
			r.Close()
		})
		wg.Wait()
		if ran.Load() != answered.Load() || answered.Load()+refused.Load() != 16*500 {
			t.Errorf("%d ran, %d were answered, %d refused", ran.Load(), answered.Load(), refused.Load())
		}
	}
}

// A caller that panics leaves a statement on the connection that nothing has read the answer of.
func TestAPanicOfACallerCostsTheConnection(t *testing.T) {
	r := newRig(t, 1, local)
	r.whenIdle()
	func() {
		defer func() { _ = recover() }()
		r.do(newOp(conn.Acquire, body{name: "panics", run: func(context.Context) error { panic("a bug") }}))
	}()
	r.do(quick(conn.Acquire, "next"))
	if r.on("panics") == r.on("next") {
		t.Error("the session of the op that panicked runs the next one")
	}
}
