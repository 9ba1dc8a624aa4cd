package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

// The states of a free key's row.
var freeKeys = map[string]func(tb testing.TB, f *faulty, key string){
	"absent": func(testing.TB, *faulty, string) {},
	"free": func(tb testing.TB, f *faulty, key string) {
		l := servertest.Locked(tb)(f.other.TryLock(context.Background(), key))
		if err := l.Unlock(context.Background()); err != nil {
			tb.Fatal(err)
		}
	},
	"expired": func(tb testing.TB, f *faulty, key string) {
		servertest.Locked(tb)(f.other.TryLock(context.Background(), key, rowlock.NoRenew()))
		f.Expire(tb, key)
	},
}

var faultSerial atomic.Int64

// A key is soon free again after a caller left, whatever becomes of its statement. It had not
// been sent yet, or had been executed, or is executed after the caller was told ErrUnknown and
// after the first round of cleaning up.
func TestACanceledAcquireLeavesNoOrphan(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, strategy := range []rowlock.Strategy{rowlock.Update, rowlock.Insert} {
			for state, arrange := range freeKeys {
				for when, scene := range orphanScenes {
					t.Run(fmt.Sprintf("%s/%s/%s", strategy, state, when), func(t *testing.T) {
						t.Parallel()
						e := e
						if e.Name == "sqlite" {
							e = e.Kind.Open(t) // the file has one writer
						}
						f := newFaulty(t, e, func(c *rowlock.Config) { c.Strategy = strategy })
						key := fmt.Sprintf("%s/%s/%d", state, when, faultSerial.Add(1))
						arrange(t, f, key)
						scene(t, f, key)
						f.wantFreeSoon(t, key)
					})
				}
			}
		}
	})
}

var orphanScenes = map[string]func(t *testing.T, f *faulty, key string){
	"executed after the caller left": func(t *testing.T, f *faulty, key string) {
		f.leaveAt(t, key, faultdb.Block)
	},
	"executed when the caller left": func(t *testing.T, f *faulty, key string) {
		f.leaveAt(t, key, faultdb.BlockAfter)
	},
	"executed after a clean-up": func(t *testing.T, f *faulty, key string) { f.arriveLate(t, key) },
}

// leaveAt cancels a TryLock while the statement that grants is held, and lets it go when the
// caller is gone.
func (f *faulty) leaveAt(t *testing.T, key string, block func(*faultdb.Gate) faultdb.Fault) {
	gate := faultdb.NewGate()
	defer gate.Release()
	f.faults.Set(faultdb.OnFunc(grants, faultdb.Nth(1, block(gate))))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := servertest.Aside(func() error { _, err := f.TryLock(ctx, key); return err })
	servertest.Await(t, servertest.Patience, gate.Arrived(), "the statement")
	cancel()
	err := servertest.Await(t, servertest.Promptly, result, "the canceled call")
	servertest.WantErr(t, err, context.Canceled, rowlock.ErrUnknown)
	gate.Release()
}

// arriveLate has the first copy of the granting statement on its way while the caller gives up on
// the second.
func (f *faulty) arriveLate(t *testing.T, key string) {
	late, second := faultdb.NewGate(), faultdb.NewGate()
	defer late.Wait()
	defer late.Release()
	defer second.Release()
	f.faults.Set(faultdb.OnFunc(grants, faultdb.Any(
		faultdb.Nth(1, faultdb.SendLate(late)),
		faultdb.Nth(2, faultdb.Block(second).And(faultdb.FailBeforeSend())))))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := servertest.Aside(func() error { _, err := f.TryLock(ctx, key); return err })
	servertest.Await(t, servertest.Patience, second.Arrived(), "the second try")
	cancel()
	servertest.WantErr(t, servertest.Await(t, servertest.Promptly, result, "the canceled call"),
		context.Canceled, rowlock.ErrUnknown)
	second.Release()
	f.faults.Set(nil)
	// The orphan cleaner has been at work when it releases for the second time.
	f.log.Reset()
	servertest.Eventually(t, "the orphan cleaner's rounds",
		func() bool { return f.log.Count(releases) >= 2 })
	late.Release()
	late.Wait()
	if owner, _ := f.row(t, key); owner == nil {
		t.Log("the late statement granted nothing, or was cleaned up at once")
	}
}

// A waiter leaves at the moment of its grant.
func TestALockCanceledAsItIsGrantedIsFreeAgain(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f := newFaulty(t, e, nil)
		holder := servertest.Locked(t)(f.other.TryLock(t.Context(), "key"))
		before, after := faultdb.NewGate(), faultdb.NewGate()
		defer before.Release()
		defer after.Release()
		f.faults.Set(faultdb.OnFunc(grants,
			faultdb.Nth(1, faultdb.Block(before).And(faultdb.BlockAfter(after)))))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := servertest.Aside(func() error { _, err := f.Lock(ctx, "key"); return err })
		if err := holder.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		servertest.Await(t, servertest.Patience, before.Arrived(), "the statement that grants")
		before.Release()
		servertest.Await(t, servertest.Patience, after.Arrived(), "the grant")
		if owner, token := f.row(t, "key"); owner == nil || token != holder.Token()+1 {
			t.Fatalf("the row is %x, %d: it was to be granted", owner, token)
		}
		cancel()
		servertest.WantErr(t, servertest.Await(t, servertest.Promptly, result, "the waiter"),
			context.Canceled)
		after.Release()
		f.wantFreeSoon(t, "key")
	})
}

// Waiters leave at any moment: each gets the lock or an error, and never leaves anything behind.
func TestWaitersThatLeaveAtAnyMomentLeaveNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f := newFaulty(t, e, func(c *rowlock.Config) { c.PollMax = 10 * time.Millisecond })
		rng := rand.New(rand.NewPCG(3, 0))
		var got, left int
		for i := range 60 {
			key := fmt.Sprintf("key %d", i%3)
			holder := servertest.Locked(t)(f.other.Lock(t.Context(), key))
			ctx, cancel := context.WithTimeout(t.Context(),
				time.Duration(rng.Int64N(int64(12*time.Millisecond))))
			result := make(chan error, 1)
			go func() {
				l, err := f.Lock(ctx, key)
				if err == nil {
					err = l.Unlock(ctx)
				}
				result <- err
			}()
			// a moment of chance, not an order
			time.Sleep(time.Duration(rng.Int64N(int64(6 * time.Millisecond))))
			if err := holder.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := servertest.Await(t, servertest.Patience, result, "the waiter")
			cancel()
			if err == nil {
				got++
			} else if left++; !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			f.wantFreeSoon(t, fmt.Sprintf("key %d", i))
		}
		t.Logf("%d got the lock, %d left", got, left)
	})
}

// The first copy of a loser's request is still under way: it may be granted after the holder's
// release, to no caller.
func TestALoserLeavesNoOrphan(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f := newFaulty(t, e, nil)
		holder := servertest.Locked(t)(f.other.TryLock(t.Context(), "key"))
		late := faultdb.NewGate()
		defer late.Wait()
		defer late.Release()
		// A loser sends its granting statement on Postgres and MariaDB, and only reads on the
		// other databases.
		f.faults.Set(faultdb.OnFunc(acquires, faultdb.Nth(1, faultdb.SendLate(late))))
		_, err := f.TryLock(t.Context(), "key")
		servertest.WantErr(t, err, rowlock.ErrHeld)
		if err := holder.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		late.Release()
		late.Wait()
		f.wantFreeSoon(t, "key")
	})
}

// A copy of a granted acquire arrives after the lock was released.
func TestACopyThatArrivesAfterUnlockLeavesNoOrphan(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f := newFaulty(t, e, nil)
		for state, arrange := range freeKeys {
			key := "key that is " + state
			arrange(t, f, key)
			late := faultdb.NewGate()
			f.faults.Set(faultdb.OnFunc(grants, faultdb.Nth(1, faultdb.SendLate(late))))
			l := servertest.Locked(t)(f.TryLock(t.Context(), key))
			f.faults.Set(nil)
			if err := l.Unlock(t.Context()); err != nil {
				t.Errorf("Unlock: %v", err)
			}
			late.Release()
			late.Wait()
			f.wantFreeSoon(t, key)
		}
	})
}

// Nothing that a client began outlives it, however it is closed.
func TestCloseLeavesNoOrphan(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		blocks := map[string]func(*faultdb.Gate) faultdb.Fault{
			"before it is sent": faultdb.Block, "before its reply": faultdb.BlockAfter,
		}
		for when, block := range blocks {
			for _, leaves := range []bool{true, false} {
				t.Run(fmt.Sprintf("held %s, caller leaves %t", when, leaves), func(t *testing.T) {
					t.Parallel()
					f := newFaulty(t, e, nil)
					key := fmt.Sprint(when, leaves)
					gate := faultdb.NewGate()
					defer gate.Release()
					f.faults.Set(faultdb.OnFunc(grants, faultdb.Nth(1, block(gate))))
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					result := servertest.Aside(func() error { _, err := f.TryLock(ctx, key); return err })
					servertest.Await(t, servertest.Patience, gate.Arrived(), "the statement")
					if leaves {
						cancel()
						servertest.WantErr(t, servertest.Await(t, servertest.Promptly, result, "the caller"),
							context.Canceled, rowlock.ErrUnknown)
					}
					closed := servertest.Aside(f.Close)
					refused := func() bool {
						_, err := f.TryLock(context.Background(), "")
						return errors.Is(err, rowlock.ErrClosed)
					}
					servertest.Eventually(t, "Close to begin", refused)
					time.Sleep(20 * time.Millisecond) // Close goes as far as it can
					gate.Release()
					servertest.WantErr(t, servertest.Await(t, servertest.Patience, closed, "Close"), nil)
					if !leaves {
						servertest.WantErr(t, servertest.Await(t, servertest.Promptly, result, "the caller"),
							rowlock.ErrClosed)
					}
					if owner, _ := f.row(t, key); owner != nil {
						t.Errorf("%q has an owner after Close", key)
					}
				})
			}
		}
	})
}
