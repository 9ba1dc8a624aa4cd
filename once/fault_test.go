package once_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/once"
)

// faulty is a pool whose connections can be broken, and what was asked of them.
func (r *rig) faulty(tb testing.TB) (*sql.DB, *faultdb.Switch, *faultdb.Log) {
	tb.Helper()
	faults, log := &faultdb.Switch{}, &faultdb.Log{}
	db, err := faultdb.Open(r.Driver, r.Source, faultdb.Any(log, faults))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	return db, faults, log
}

// Whatever breaks, and wherever: the answer is right, and the next repeat makes it exactly one
// effect.
func TestABrokenConnectionLeavesOneEffectAndNoDoubt(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		db, faults, log := r.faulty(t)
		db.SetMaxIdleConns(-1) // so that each begins with a connection
		o, clean := r.open(t, db, once.Config{Reap: -1}), r.once(t)
		log.Reset()
		do(t, o, once.Request{Key: "clean"}, r.effect("clean", "value"))
		ops := log.Ops()
		if !slices.ContainsFunc(ops, func(op faultdb.Op) bool { return op.Kind == faultdb.Commit }) {
			t.Fatalf("no commit: %v", ops)
		}
		for i, op := range ops {
			for how, fault := range map[string]faultdb.Fault{
				"before": faultdb.FailBeforeSend(), "after": faultdb.LoseReply(),
				"before, bad": faultdb.FailBeforeSend().Reporting(driver.ErrBadConn), "after, bad": faultdb.LoseReply().Reporting(driver.ErrBadConn),
			} {
				name := fmt.Sprintf("%d %s %s", i, op.Kind, how)
				counter := faultdb.NewCounter(faultdb.Nth(int64(i+1), fault))
				faults.Set(counter)
				res, err := o.Do(t.Context(), once.Request{Key: name}, r.effect(name, "value"))
				faults.Set(nil)
				if counter.Faults() != 1 {
					t.Errorf("%s: %d faults", name, counter.Faults())
				}
				mine := op.Executes() && strings.Contains(op.Query, r.effects) || op.Kind == faultdb.Prepare && strings.Contains(op.Query, r.effects)
				switch {
				case err != nil && (!mine || errors.Is(err, lease.ErrUnknown)):
					t.Errorf("%s: got %v", name, err)
				case err != nil:
					r.wantEffects(t, name, 0) // the function's own statement: its error is returned
				case string(res.Value) != "value":
					t.Errorf("%s: got %+v", name, res)
				default:
					r.wantEffects(t, name, 1)
				}
				do(t, clean, once.Request{Key: name}, r.effect(name, "value"))
				r.wantEffects(t, name, 1)
			}
		}
		t.Logf("%d operations", len(ops))
	})
}

// A server that does not answer to BEGIN delays no caller for longer than its wait.
func TestABeginThatIsNotAnsweredEndsWithItsContext(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		db, faults, _ := r.faulty(t)
		o := r.open(t, db, eager())
		gate := faultdb.NewGate()
		defer gate.Release()
		faults.Set(faultdb.OnKind(faultdb.Always(faultdb.Block(gate)), faultdb.Begin))
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() {
			_, err := o.Do(ctx, once.Request{Key: "key"}, never(t))
			got <- err
		}()
		<-gate.Arrived()
		cancel()
		select {
		case err := <-got:
			wantIs(t, err, context.Canceled)
		case <-time.After(patience):
			t.Error("it waits on")
		}
	})
}

// A COMMIT that is still on its way when the key is asked for: the claim waits until the server has
// dealt with it.
func TestACommitThatArrivesLateIsWaitedFor(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		db, faults, _ := r.faulty(t)
		o := r.open(t, db, once.Config{Wait: patience, Reap: -1})
		gate := faultdb.NewGate()
		faults.Set(faultdb.OnKind(faultdb.Nth(1, faultdb.SendLate(gate)), faultdb.Commit))
		got := make(chan error, 1)
		go func() {
			_, err := o.Do(context.Background(), once.Request{Key: "key"}, r.effect("e", "value"))
			got <- err
		}()
		<-gate.Arrived() // on SQLite no waiter can be seen
		r.waiting(t, 1)
		gate.Release()
		gate.Wait()
		if err := <-got; err != nil {
			t.Error(err)
		}
		r.wantEffects(t, "e", 1)
	})
}

// Where the server has not dealt with the COMMIT when the wait is over, the outcome is unknown, and
// the next who asks finds it.
func TestACommitThatArrivesTooLateIsUnknown(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		if r.Name == "sqlite" {
			t.Skip("there is no server that could have it")
		}
		db, faults, _ := r.faulty(t)
		o, clean := r.open(t, db, once.Config{Wait: 100 * time.Millisecond, Reap: -1}), r.open(t, r.DB, eager())
		gate := faultdb.NewGate()
		defer gate.Release()
		faults.Set(faultdb.OnKind(faultdb.Nth(1, faultdb.SendLate(gate)), faultdb.Commit))
		_, err := o.Do(context.Background(), once.Request{Key: "key"}, r.effect("e", "value"))
		wantIs(t, err, lease.ErrUnknown, once.ErrInFlight)
		gate.Release()
		gate.Wait()
		if res := do(t, clean, once.Request{Key: "key"}, r.effect("e", "value")); string(res.Value) != "value" {
			t.Errorf("got %+v", res)
		}
		r.wantEffects(t, "e", 1)
	})
}

// If the server answers no more, the outcome is unknown, and the error says so.
func TestAnOutcomeThatCannotBeHadIsUnknown(t *testing.T) {
	each(t, func(t *testing.T, r *rig) {
		for committed, fault := range []faultdb.Fault{faultdb.FailBeforeSend(), faultdb.LoseReply()} {
			db, faults, _ := r.faulty(t)
			o := r.open(t, db, once.Config{Wait: 100 * time.Millisecond, Reap: -1})
			name := fmt.Sprint("e", committed)
			faults.Set(faultdb.Any(faultdb.OnKind(faultdb.Always(fault), faultdb.Commit), afterCommit(faultdb.FailBeforeSend())))
			_, err := o.Do(t.Context(), once.Request{Key: name}, r.effect(name, "value"))
			faults.Set(nil)
			wantIs(t, err, lease.ErrUnknown, faultdb.ErrCut)
			r.wantEffects(t, name, committed)
			want(t, do(t, o, once.Request{Key: name}, r.effect(name, "value")), "value", committed == 1)
			r.wantEffects(t, name, 1)
		}
	})
}

// afterCommit injects f into everything that follows a commit.
func afterCommit(f faultdb.Fault) faultdb.Injector {
	var lost atomic.Bool
	return faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		if op.Kind == faultdb.Commit {
			lost.Store(true)
			return faultdb.None
		}
		if lost.Load() {
			return f
		}
		return faultdb.None
	})
}
