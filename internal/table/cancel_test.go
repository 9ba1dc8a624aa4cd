package table_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/testdb"
	"github.com/rowlockdb/rowlock/lease"
)

// promptly is how soon a caller who left must be back, whatever his statement does.
const promptly = 15 * time.Second

// calls are what can be cancelled: each returns its error, and uses what it got, so that the race
// detector sees whether a pinned connection still writes to it.
func calls(r *rig, l lease.Lease) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"acquire": func(ctx context.Context) error {
			answers, err := r.store.Acquire(ctx, []lease.AcquireRequest{{Key: "fresh", Owner: lease.NewOwner(), TTL: ttl}})
			answers[0].Token++
			return err
		},
		"renew": func(ctx context.Context) error {
			answers, err := r.store.Renew(ctx, []lease.RenewRequest{{Lease: l, TTL: ttl}})
			clear(answers)
			return err
		},
		"release": func(ctx context.Context) error {
			answers, err := r.store.Release(ctx, []lease.Lease{{Key: l.Key, Owner: lease.NewOwner()}})
			clear(answers)
			return err
		},
		"inspect": func(ctx context.Context) error {
			rows, err := r.store.Inspect(ctx, lease.Filter{})
			clear(rows)
			return err
		},
		"sweep": func(ctx context.Context) error {
			removed, err := r.store.Sweep(ctx, lease.SweepOptions{})
			if removed < 0 { // read, for the race detector
				panic(removed)
			}
			return err
		},
	}
}

// Every operation of the driver at which a call can be when its caller leaves is held, before it is
// sent and after. A call that says nothing of an unknown outcome has changed nothing.
func TestACancelledCallReturnsAtOnceAndSaysWhatItKnows(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		l := hold(t, r.clean, "held")
		holds := map[string]func(*faultdb.Gate) faultdb.Fault{"before it is sent": faultdb.Block, "before its reply": faultdb.BlockAfter}
		for name, call := range calls(r, l) {
			for n := int64(1); ; n++ {
				reached := false
				for when, block := range holds {
					hit := r.leave(t, n, block, call)
					t.Logf("%s, left at operation %d, %s: %t", name, n, when, hit)
					reached = reached || hit
				}
				if !reached {
					break
				}
			}
			if row := r.row(t, "held"); row.Lease != l || !row.Held {
				t.Errorf("after %s: the row is %+v", name, row)
			}
		}
	})
}

// leave cancels a call at its n-th operation. It reports false if the call ended before.
func (r *rig) leave(t *testing.T, n int64, block func(*faultdb.Gate) faultdb.Fault, call func(context.Context) error) (reached bool) {
	t.Helper()
	r.Exec(t, `DELETE FROM {rowlock} WHERE {key} <> ?`, []byte("held"))
	release(t, r.clean, hold(t, r.clean, "dead")) // for the sweep
	gate := faultdb.NewGate()
	defer gate.Release()
	r.faults.Set(faultdb.Nth(n, block(gate)))
	defer r.faults.Set(nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- call(ctx) }()
	select {
	case <-gate.Arrived():
	case err := <-result:
		wantIs(t, err, nil)
		return false
	case <-time.After(patience):
		t.Fatal("the call neither ended nor was held")
	}
	cancel()
	select {
	case err := <-result:
		wantIs(t, err, context.Canceled)
		if row := r.row(t, "fresh"); !errors.Is(err, lease.ErrUnknown) && row.Held {
			t.Errorf("got %v, and the row %+v", err, row)
		}
	case <-time.After(promptly):
		t.Error("the call did not return when its context ended")
		gate.Release()
		<-result
	}
	gate.Release()
	// The pinned connection goes on, behind what it was held at.
	release(t, r.store, lease.Lease{Key: "held", Owner: lease.NewOwner()})
	return true
}

// What a pinned connection still does for a call that has returned must not touch what the call has
// handed out. Only clocks order the two here, or the race detector would take a gate for the order
// that is missing.
func TestNothingIsWrittenToWhatACancelledCallReturned(t *testing.T) {
	const leave, arrive = 10 * time.Millisecond, 40 * time.Millisecond
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		l := hold(t, r.clean, "held")
		for name, call := range calls(r, l) {
			for n := int64(1); n < 9; n++ {
				release(t, r.clean, hold(t, r.clean, "dead"))
				r.faults.Set(faultdb.Nth(n, faultdb.DelayAfter(arrive)))
				ctx, cancel := context.WithTimeout(t.Context(), leave)
				err := call(ctx)
				cancel()
				r.faults.Set(nil)
				release(t, r.store, lease.Lease{Key: "held", Owner: lease.NewOwner()}) // behind it
				if err == nil {
					break
				}
				wantIs(t, err, context.DeadlineExceeded)
				if n > 1 && name != "sweep" {
					break
				}
			}
		}
	})
}

// What has not been sent when its caller leaves never is, and the caller knows.
func TestACallThatLeavesTheQueueIsNotSent(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		gate := faultdb.NewGate()
		defer gate.Release()
		r.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.Block(gate))))
		var busy sync.WaitGroup
		defer busy.Wait()
		busy.Go(func() { hold(t, r.store, "busy") })
		<-gate.Arrived()
		r.log.Reset()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := ask(ctx, r.store, lease.AcquireRequest{Key: "queued", Owner: lease.NewOwner(), TTL: ttl})
		wantIs(t, err, context.DeadlineExceeded, conn.ErrWithdrawn)
		wantNot(t, err, lease.ErrUnknown)
		gate.Release()
		busy.Wait()
		release(t, r.store, lease.Lease{Key: "busy", Owner: lease.NewOwner()})
		if row := r.row(t, "queued"); row.Key != "" {
			t.Errorf("a request that had been withdrawn left %+v", row)
		}
	})
}

// The way to resolve an unknown outcome is to ask again under the same owner.
func TestAnAcquireRepeatedAfterItWasCancelledIsOneGrant(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		last := hold(t, r.clean, "key")
		release(t, r.clean, last)
		gate := faultdb.NewGate()
		defer gate.Release()
		r.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.BlockAfter(gate))))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req := lease.AcquireRequest{Key: "key", Owner: lease.NewOwner(), TTL: ttl}
		go func() { <-gate.Arrived(); cancel() }()
		_, err := ask(ctx, r.store, req)
		wantIs(t, err, lease.ErrUnknown, context.Canceled)
		gate.Release()
		got, err := ask(t.Context(), r.store, req)
		wantIs(t, err, nil)
		if !got.Granted || got.Token != last.Token+1 {
			t.Errorf("got %+v after token %d", got, last.Token)
		}
	})
}

func TestCloseWaitsForWhatIsRunningAndThenRefuses(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		r := newRig(t, e, adapter.Update, 1)
		gate := faultdb.NewGate()
		defer gate.Release()
		r.faults.Set(faultdb.OnFunc(faultdb.Op.Executes, faultdb.Nth(1, faultdb.Block(gate))))
		var running sync.WaitGroup
		defer running.Wait()
		running.Go(func() { hold(t, r.store, "running") })
		<-gate.Arrived()
		closed := make(chan struct{})
		go func() { _ = r.store.Close(); close(closed) }()
		gate.Release()
		<-closed
		running.Wait()
		if !r.row(t, "running").Held {
			t.Error("an acquire that was running was dropped by Close")
		}
		for name, call := range calls(r, lease.Lease{Key: "running", Owner: lease.NewOwner(), Token: 1}) {
			if err := call(t.Context()); !errors.Is(err, lease.ErrClosed) || errors.Is(err, lease.ErrUnknown) {
				t.Errorf("%s on a closed store returned %v", name, err)
			}
		}
	})
}
