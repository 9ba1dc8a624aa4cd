package conn_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock/internal/conn"
)

func TestWhatItsCallerWithdrewIsNeverRun(t *testing.T) {
	r := newRig(t, 1, nil)
	busy := r.occupy(conn.Acquire, "busy")
	for range 10 {
		r.wantIs(r.Do(leaveOnceSubmitted(), quick(conn.Acquire, "withdrawn")), conn.ErrWithdrawn, context.Canceled)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r.wantIs(r.Do(ended, quick(conn.Renew, "too late")), conn.ErrWithdrawn, context.Canceled)
	close(busy.letGo)
	r.do(quick(conn.Acquire, "last"))
	r.wantOrder("busy", "last")
}

// The caller of a running op leaves at once; the op goes on, and the connection with it.
func TestAnOpWhoseCallerLeftGoesOn(t *testing.T) {
	r := newRig(t, 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	letGo := make(chan struct{})
	o := newOp(conn.Acquire, body{name: "op", run: func(context.Context) error {
		cancel()
		<-letGo
		return errNothing
	}})
	r.Go(o)
	r.wantIs(r.Do(ctx, o), conn.ErrOrphaned, context.Canceled) // returns although the op has not ended
	close(letGo)
	r.do(quick(conn.Acquire, "next"))
	r.wantIs(o.Err, errNothing) // it has ended: the connection runs one after the other
	if o.Body.answer != "answer to op" {
		t.Errorf("its answer is %q", o.Body.answer)
	}
}

func TestACallerWhoStaysGetsTheAnswer(t *testing.T) {
	r := newRig(t, 1, nil)
	o := quick(conn.Acquire, "op")
	r.do(o)
	if o.Body.answer != "answer to op" {
		t.Errorf("the caller got answer %q", o.Body.answer)
	}
	r.Go(quick(conn.Acquire, "nobody waits for this one"))
	r.do(quick(conn.Acquire, "last"))
	r.wantOrder("op", "nobody waits for this one", "last")
}

// The whole life of an op under a storm of cancellations: run at most once, and ended in exactly
// one of three ways.
func TestEveryOpEndsInExactlyOneWay(t *testing.T) {
	const callers, each = 16, 400
	runs := make([]atomic.Int64, callers*each)
	r := newRig(t, 3, func(c *conn.Config[body]) {
		c.Merge = 4
	})
	var done, withdrawn, left atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(caller)))
			for i := range each {
				n := caller*each + i
				ctx, cancel := context.WithCancel(t.Context())
				cancelIn := rng.IntN(4) // by the op itself, or never, or by another goroutine, or on submission
				o := newOp(conn.Kind(rng.IntN(3)), body{name: fmt.Sprint(n), run: func(context.Context) error {
					runs[n].Add(1)
					if cancelIn == 0 {
						cancel()
						for range 100 {
							runtime.Gosched() // the caller's turn to see it
						}
					}
					return nil
				}})
				var err error
				switch cancelIn {
				case 2:
					go cancel()
					err = r.Do(ctx, o)
				case 3:
					err = r.Do(leaving{ctx, cancel}, o)
				default:
					err = r.Do(ctx, o)
				}
				cancel()
				outcome(t, err, &done, &withdrawn, &left)
			}
		})
	}
	wg.Wait()
	r.Close()
	var ran int64
	for n := range runs {
		ran += runs[n].Load()
		if runs[n].Load() > 1 {
			t.Fatalf("op %d ran %d times", n, runs[n].Load())
		}
	}
	if ran != done.Load()+left.Load() || done.Load()+withdrawn.Load()+left.Load() != callers*each {
		t.Errorf("%d ran; %d answered, %d withdrawn, %d left while running", ran, done.Load(), withdrawn.Load(), left.Load())
	}
	t.Logf("of %d ops %d were answered, %d withdrawn, %d orphaned", callers*each, done.Load(), withdrawn.Load(), left.Load())
	if done.Load() == 0 || withdrawn.Load() == 0 || left.Load() == 0 {
		t.Error("one of the three ways was never taken")
	}
}

func outcome(t *testing.T, err error, done, withdrawn, left *atomic.Int64) {
	switch {
	case err == nil:
		done.Add(1)
	case isOne(err, conn.ErrWithdrawn, conn.ErrOrphaned):
		withdrawn.Add(1)
	case isOne(err, conn.ErrOrphaned, conn.ErrWithdrawn):
		left.Add(1)
	default:
		t.Errorf("unexpected outcome %v", err)
	}
}
