package lane_test

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
)

func local(c *lane.Config[body]) {
	c.Setup = func(_ context.Context, s *sqlstore.Session) error { s.Local = true; return nil }
}

func goroutine() string {
	buf := make([]byte, 64)
	id, _, _ := bytes.Cut(buf[:runtime.Stack(buf, false)], []byte(" ["))
	return string(id)
}

// whenIdle returns when an op is run by its caller, as any is that finds a lane idle; bounded says
// whether it had a deadline then.
func (r *rig) whenIdle() (bounded bool) {
	r.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		var on string
		r.do(newOp(lane.Acquire, body{name: "op", run: func(ctx context.Context) error {
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

// An op is run by its caller, if a lane is idle; within the lane's timeout, unless it goes no
// further than this machine's disk.
func TestAnOpIsRunByItsCaller(t *testing.T) {
	if newRig(t, 1, local).whenIdle() {
		t.Error("a local op had a deadline")
	}
	if !newRig(t, 1, nil).whenIdle() {
		t.Error("an op had no deadline")
	}
}

func TestACallerWhoLeavesEndsWhatHeRunsHimself(t *testing.T) {
	r := newRig(t, 1, func(c *lane.Config[body]) { c.Timeout = time.Hour })
	ctx, leave := context.WithCancel(t.Context())
	o := newOp(lane.Acquire, body{name: "op", run: func(ctx context.Context) error {
		leave()
		<-ctx.Done()
		return ctx.Err()
	}})
	r.whenIdle()
	r.wantIs(r.Do(ctx, o), nil)
	r.wantIs(o.Err, context.Canceled)
}

// What comes while a caller has the lane is run by the lane itself, renewals first.
func TestABorrowedLaneGoesOnWithWhatCameMeanwhile(t *testing.T) {
	r := newRig(t, 1, local)
	first := hold(lane.Acquire, "first")
	done := make(chan struct{})
	go func() { _ = r.Do(t.Context(), first.op); close(done) }()
	r.wait(first.running, "first to run")
	last := hold(lane.Release, "release")
	r.Go(quick(lane.Acquire, "acquire"))
	r.Go(last.op)
	r.Go(quick(lane.Renew, "renew"))
	close(first.letGo)
	r.wait(done, "first to end")
	r.wait(last.running, "release to run")
	close(last.letGo)
	r.do(quick(lane.Acquire, "end"))
	r.wantOrder("first", "renew", "release", "acquire", "end")
}

func TestSettleWaitsForABorrowedLane(t *testing.T) {
	r := newRig(t, 1, local)
	h := hold(lane.Acquire, "op")
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

// Many callers, few lanes, and in the end a Close: every op that was taken on is run once and
// answered.
func TestBorrowedLanesLoseNothing(t *testing.T) {
	for _, lanes := range []int{1, 3} {
		r := newRig(t, lanes, local)
		var ran, answered, refused atomic.Int64
		var wg sync.WaitGroup
		for n := range 16 {
			wg.Go(func() {
				for i := range 500 {
					o := newOp(lane.Kind((n+i)%3), body{name: "op", run: func(context.Context) error { ran.Add(1); return nil }})
					if err := r.Do(t.Context(), o); err == nil {
						answered.Add(1)
					} else {
						r.wantIs(err, lane.ErrClosed)
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
		r.do(newOp(lane.Acquire, body{name: "panics", run: func(context.Context) error { panic("a bug") }}))
	}()
	r.do(quick(lane.Acquire, "next"))
	if r.on("panics") == r.on("next") {
		t.Error("the session of the op that panicked runs the next one")
	}
}
