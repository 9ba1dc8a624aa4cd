package lane_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlockdb/rowlock/internal/lane"
)

func TestWhatItsCallerWithdrewIsNeverRun(t *testing.T) {
	r := newRig(t, 1, nil)
	busy := r.occupy(lane.Acquire, "busy")
	for range 10 {
		r.wantIs(r.Do(leaveOnceSubmitted(), quick(lane.Acquire, "withdrawn")), lane.ErrWithdrawn, context.Canceled)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	r.wantIs(r.Do(ended, quick(lane.Renew, "too late")), lane.ErrWithdrawn, context.Canceled)
	close(busy.letGo)
	r.do(quick(lane.Acquire, "last"))
	r.wantOrder("busy", "last")
	if n := len(r.abandoned()); n != 0 {
		t.Errorf("%d ops that never ran were given to Orphan", n)
	}
}

// The caller of a running op leaves at once; the op goes on, and its outcome goes to Orphan.
func TestOrphanGetsTheOutcomeOfAnOpWhoseCallerLeft(t *testing.T) {
	r := newRig(t, 1, nil)
	ctx, cancel := context.WithCancel(t.Context())
	letGo := make(chan struct{})
	o := lane.NewOp(lane.Acquire, body{name: "op", run: func(context.Context) error {
		cancel()
		<-letGo
		return errNothing
	}})
	r.wantIs(r.Do(ctx, o), lane.ErrOrphaned, context.Canceled) // returns although the op has not ended
	close(letGo)
	r.do(quick(lane.Acquire, "next"))
	orphans := r.abandoned()
	if len(orphans) != 1 || orphans[0] != o {
		t.Fatalf("Orphan got %v, want the op", orphans)
	}
	r.wantIs(orphans[0].Err, errNothing)
	if got := orphans[0].Body.answer; got != "answer to op" {
		t.Errorf("Orphan got answer %q", got)
	}
}

func TestNobodyIsGivenAnOpWhoseCallerStayed(t *testing.T) {
	r := newRig(t, 1, nil)
	o := quick(lane.Acquire, "op")
	r.do(o)
	if o.Body.answer != "answer to op" {
		t.Errorf("the caller got answer %q", o.Body.answer)
	}
	r.Go(quick(lane.Acquire, "nobody waits for this one"))
	r.do(quick(lane.Acquire, "last"))
	if n := len(r.abandoned()); n != 0 {
		t.Errorf("Orphan got %d ops", n)
	}
}

// A lane whose caller has left is as good as any.
func TestOrphanMaySendMore(t *testing.T) {
	var r *rig
	sent := make(chan struct{})
	r = newRig(t, 1, func(c *lane.Config[body]) {
		c.Orphan = func(*op) {
			r.Go(lane.NewOp(lane.Release, body{name: "clean up", run: func(context.Context) error { close(sent); return nil }}))
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	o := lane.NewOp(lane.Acquire, body{name: "op", run: func(context.Context) error { cancel(); return nil }})
	err := r.Do(ctx, o)
	if err == nil {
		t.Skip("the answer came at the very moment the caller left")
	}
	r.wait(sent, "what Orphan sent")
}

// The whole life of an op under a storm of cancellations: run at most once, and ended in exactly one of three ways.
func TestEveryOpEndsInExactlyOneWay(t *testing.T) {
	const callers, each = 16, 400
	var orphaned atomic.Int64
	seen := make([]atomic.Int64, callers*each) // by Orphan
	runs := make([]atomic.Int64, callers*each)
	r := newRig(t, 3, func(c *lane.Config[body]) {
		c.Merge = [3]int{4, 1, 2}
		c.Orphan = func(o *op) {
			var n int
			fmt.Sscan(o.Body.name, &n)
			seen[n].Add(1)
			orphaned.Add(1)
		}
	})
	var done, withdrawn, left atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(7, uint64(caller)))
			for i := range each {
				n := caller*each + i
				ctx, cancel := context.WithCancel(t.Context())
				cancelIn := rng.IntN(4) // by the op itself, or never, or by somebody, or on submission
				o := lane.NewOp(lane.Kind(rng.IntN(3)), body{name: fmt.Sprint(n), run: func(context.Context) error {
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
		if runs[n].Load() > 1 || seen[n].Load() > 1 || seen[n].Load() > runs[n].Load() {
			t.Fatalf("op %d ran %d times and was given to Orphan %d times", n, runs[n].Load(), seen[n].Load())
		}
	}
	if ran != done.Load()+orphaned.Load() || left.Load() != orphaned.Load() || done.Load()+withdrawn.Load()+left.Load() != callers*each {
		t.Errorf("%d ran; %d answered, %d withdrawn, %d left while running, %d given to Orphan", ran, done.Load(), withdrawn.Load(), left.Load(), orphaned.Load())
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
	case isOne(err, lane.ErrWithdrawn, lane.ErrOrphaned):
		withdrawn.Add(1)
	case isOne(err, lane.ErrOrphaned, lane.ErrWithdrawn):
		left.Add(1)
	default:
		t.Errorf("unexpected outcome %v", err)
	}
}
