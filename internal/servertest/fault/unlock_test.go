package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/faultdb"
	"github.com/rowlockdb/rowlock/internal/servertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

func TestUnlockWithACanceledContextReleases(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f := newFaulty(t, e, nil)
		ctx, cancel := context.WithCancel(t.Context())
		l := servertest.Locked(t)(f.Lock(ctx, "key"))
		cancel()
		wantLives(t, l)
		servertest.WantErr(t, l.Unlock(ctx), nil)
		servertest.WantErr(t, context.Cause(l.Context()), rowlock.ErrUnlocked)
		if owner, token := f.row(t, "key"); owner != nil || token != l.Token() {
			t.Errorf("the row is %x, %d after Unlock of token %d", owner, token, l.Token())
		}
		servertest.WantErr(t, l.Unlock(ctx), rowlock.ErrUnlocked)
	})
}

// However one statement of Unlock is broken, the lock is released once, and no call returns that
// it was lost.
func TestUnlockOverABrokenConnectionReleasesOnce(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f := newFaulty(t, e, nil)
		late := faultdb.NewGate()
		defer late.Wait()
		defer late.Release()
		phases := map[string]faultdb.Fault{
			"never sent": faultdb.FailBeforeSend(), "reply lost": faultdb.LoseReply(),
			"sent late": faultdb.SendLate(late),
		}
		for phase, fault := range phases {
			for _, report := range brokenReports {
				t.Run(phase+"/"+report.name, func(t *testing.T) {
					key := phase + report.name
					l := servertest.Locked(t)(f.TryLock(t.Context(), key))
					hits := faultdb.NewCounter(faultdb.OnFunc(releases,
						faultdb.Nth(1, fault.Reporting(report.err))))
					f.faults.Set(hits)
					defer f.faults.Set(nil)
					servertest.WantErr(t, l.Unlock(t.Context()), nil)
					if hits.Faults() != 1 {
						t.Fatal("no fault was injected")
					}
					next := servertest.Locked(t)(f.other.TryLock(t.Context(), key))
					if next.Token() != l.Token()+1 {
						t.Errorf("token %d was followed by %d", l.Token(), next.Token())
					}
					if phase == "sent late" {
						late.Release()
						late.Wait()
					}
					servertest.WantErr(t, next.Unlock(t.Context()), nil) // the late copy has not released it
				})
			}
		}
	})
}

// A database that does not answer does not keep a caller: Unlock returns ErrUnknown, and the
// client goes on trying.
func TestUnlockOfADatabaseThatHangsReturnsAndGoesOnInTheBackground(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		f := newFaulty(t, e, nil)
		l := servertest.Locked(t)(f.TryLock(t.Context(), "key"))
		gate := faultdb.NewGate()
		defer gate.Release()
		f.faults.Set(faultdb.OnFunc(releases,
			faultdb.Always(faultdb.Block(gate).And(faultdb.FailBeforeSend()))))
		began := time.Now()
		err := l.Unlock(t.Context())
		servertest.WantErr(t, err, rowlock.ErrUnknown)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is a context's, though the caller has none that ends", err)
		}
		if took := time.Since(began); took > servertest.Promptly {
			t.Errorf("Unlock took %s", took)
		}
		if owner, _ := f.row(t, "key"); owner == nil {
			t.Fatal("the key is free: the test shows nothing")
		}
		f.faults.Set(nil)
		gate.Release()
		f.wantFreeSoon(t, "key")
	})
}

// An acquire whose answer comes after its lease has ended is not handed out, and does not disturb
// what the client holds.
func TestAnAnswerThatComesTooLateIsNoLock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		const ttl = 300 * time.Millisecond
		f := newFaulty(t, e, nil)
		freeKeys["free"](t, f, "late")
		// As short a lease is lost by a process that gets no turn on a busy machine.
		kept := servertest.Locked(t)(f.TryLock(t.Context(), "kept", rowlock.TTL(10*ttl)))
		gate := faultdb.NewGate()
		defer gate.Release()
		f.faults.Set(faultdb.OnFunc(grants, faultdb.Nth(1, faultdb.BlockAfter(gate))))
		result := servertest.Aside(func() error {
			_, err := f.TryLock(t.Context(), "late", rowlock.TTL(ttl))
			return err
		})
		servertest.Await(t, servertest.Patience, gate.Arrived(), "the grant")
		servertest.Eventually(t, "the lease to end",
			func() bool { return servertest.LeaseLeft(t, e, "late") < 0 })
		gate.Release()
		if e.Name == "sqlite" {
			// its one pinned connection could not renew meanwhile
			servertest.Await(t, servertest.Patience, result, "the answer")
			return
		}
		servertest.WantErr(t, servertest.Await(t, servertest.Patience, result, "the answer"),
			rowlock.ErrLost)
		f.wantFreeSoon(t, "late")
		before := servertest.LeaseLeft(t, e, "kept")
		servertest.Eventually(t, "another renewal",
			func() bool {
				now := servertest.LeaseLeft(t, e, "kept")
				up := now > before
				before = now
				return up
			})
		wantLives(t, kept)
	})
}

// renewals matches what extends leases.
func renewals(op faultdb.Op) bool {
	return op.Executes() && strings.Contains(op.Query, " /* rowlock renew */ ")
}

// Every renewal is broken somewhere, in turn before and after it is executed: the lock outlives
// its first lease many times over, and its holder notices nothing.
func TestRenewalsOverABrokenConnectionKeepTheLock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for _, report := range brokenReports {
			t.Run(report.name, func(t *testing.T) {
				t.Parallel()
				// A shorter lease is lost by a process that gets no turn on a busy machine.
				const ttl = 3 * time.Second
				var lost atomic.Int64
				f := newFaulty(t, e, func(c *rowlock.Config) {
					c.TTL = ttl
					c.Hooks.Lost = func(context.Context, string, rowlock.Token, error) { lost.Add(1) }
				})
				var keys []*rowlock.Lock
				for i := range 3 {
					keys = append(keys, servertest.Locked(t)(f.TryLock(t.Context(), fmt.Sprint(report.name, i))))
				}
				hits := faultdb.NewCounter(faultdb.OnFunc(renewals, inTurn(report.err)))
				f.faults.Set(hits)
				began := time.Now()
				servertest.Eventually(t, "broken renewals",
					func() bool { return lost.Load() > 0 || hits.Faults() >= 4 && time.Since(began) > 5*ttl/2 })
				f.faults.Set(nil)
				for _, l := range keys {
					wantLives(t, l)
					if _, token := f.row(t, l.Key()); token != l.Token() {
						t.Errorf("the row has token %d, the lock %d", token, l.Token())
					}
					servertest.WantErr(t, l.Unlock(t.Context()), nil)
				}
				if lost.Load() != 0 {
					t.Errorf("%d locks were lost", lost.Load())
				}
				t.Logf("%d faults", hits.Faults())
			})
		}
	})
}

// inTurn breaks an operation before it is sent, and one after, and leaves enough alone between
// them that a renewal can pass.
func inTurn(err error) faultdb.Injector {
	const between = 2
	var n atomic.Int64
	return faultdb.Func(func(faultdb.Op) faultdb.Fault {
		switch n.Add(1) % (2 * between) {
		case 1:
			return faultdb.LoseReply().Reporting(err)
		case 1 + between:
			return faultdb.FailBeforeSend().Reporting(err)
		}
		return faultdb.None
	})
}

// The lock lives on, whether a renewal was never sent, was applied without an answer, or arrives
// long after a later one.
func TestARenewalThatIsCutKeepsTheLock(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		// A shorter lease is lost by a process that gets no turn on a busy machine.
		const ttl = 3 * time.Second
		late := faultdb.NewGate()
		t.Cleanup(late.Wait)
		t.Cleanup(late.Release)
		for name, fault := range map[string]faultdb.Fault{
			"cut": faultdb.FailBeforeSend(), "reply lost": faultdb.LoseReply(),
			"sent late": faultdb.SendLate(late),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := newFaulty(t, e, nil)
				l := servertest.Locked(t)(f.TryLock(t.Context(), name, rowlock.TTL(ttl)))
				hits := faultdb.NewCounter(faultdb.OnFunc(renewals, faultdb.Nth(1, fault)))
				f.faults.Set(hits)
				servertest.Eventually(t, "a renewal", func() bool { return hits.Faults() == 1 })
				if name == "sent late" {
					time.Sleep(ttl / 4)
					late.Release()
				}
				began := time.Now()
				servertest.Eventually(t, "more than a lease", func() bool { return time.Since(began) > 2*ttl })
				wantLives(t, l)
				servertest.WantErr(t, l.Unlock(t.Context()), nil)
			})
		}
	})
}

// Unlock and Close may run at the same time: one of them releases what is held.
func TestUnlockBesideCloseReleasesEverything(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e *testdb.Env) {
		for round := range 5 {
			c := servertest.Open(t, e.DB, e, nil)
			var all []*rowlock.Lock
			for i := range 20 {
				all = append(all, servertest.Locked(t)(c.TryLock(t.Context(), fmt.Sprintf("%d/%d", round, i))))
			}
			var unlocking sync.WaitGroup
			for _, l := range all {
				unlocking.Go(func() { _ = l.Unlock(context.Background()) })
			}
			servertest.WantErr(t, c.Close(), nil)
			unlocking.Wait()
		}
		var held int
		err := e.DB.QueryRowContext(t.Context(),
			e.SQL(`SELECT count(*) FROM {rowlock} WHERE owner IS NOT NULL`)).Scan(&held)
		if err != nil || held > 0 {
			t.Errorf("%d keys have an owner after Close, %v", held, err)
		}
	})
}
