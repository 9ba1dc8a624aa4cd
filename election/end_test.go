package election_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

var errShutdown = errors.New("the process is to end")

// The next leader must not begin while the last one finishes.
func TestALeaderThatEndsIsDrained(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		const drain = 10 * clienttest.TTL
		a := stand(t, c, election.Drain(drain))
		first := a.next(0)
		b := stand(t, clienttest.Client(t, s, nil))
		a.stop(errShutdown)
		<-first.ctx.Done()
		clienttest.WantIs(t, "the cause", context.Cause(first.ctx), errShutdown)
		b.waits(drain - time.Second) // the lease is renewed meanwhile
		if cause := context.Cause(first.l.Context()); cause != nil {
			t.Errorf("the lock of a leader that drains has ended: %v", cause)
		}
		first.returns(first.ctx.Err())
		if err := a.ended(0); err != nil {
			t.Errorf("Run: %v", err)
		}
		b.retire(b.next(soon))
		if errs := a.told(); len(errs) > 0 {
			t.Errorf("OnError was told %v", errs)
		}
	})
}

// A lead that ignores its ctx does not lead for ever, and its Run does not leave it behind.
func TestDrainingIsBounded(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		a := stand(t, c, election.Drain(time.Minute))
		first := a.next(0)
		b := stand(t, clienttest.Client(t, s, nil))
		a.stop(nil)
		began := time.Now()
		second := b.next(2 * time.Minute)
		if took := time.Since(began); took < time.Minute || took > time.Minute+soon {
			t.Errorf("the next leader began %s after the end", took)
		}
		time.Sleep(time.Hour)
		a.wantTold(election.ErrDrain)
		second.leads(t, s)
		if len(a.done) > 0 {
			t.Fatal("Run has left its lead behind")
		}
		first.returns(errOwn)
		err := a.ended(0)
		clienttest.WantIs(t, "Run", err, election.ErrDrain, errOwn)
		text := fmt.Sprint(err)
		if strings.Contains(text, "\n") || !strings.HasPrefix(text, "rowlock: ") {
			t.Errorf("Run: %q", text)
		}
		b.retire(second)
	})
}

func TestNoDrainingIfNoneIsWanted(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		a := stand(t, c, election.Drain(0))
		first := a.next(0)
		a.stop(nil)
		<-first.ctx.Done()
		synctest.Wait()
		if clienttest.IsHeld(t, s, election.Key("boss")) {
			t.Error("held after the end")
		}
		first.returns(nil)
		if err := a.ended(0); err != nil || len(a.told()) > 0 {
			t.Errorf("Run: %v", err)
		}
	})
}

// The renewal fails. lead is told at its deadline, before another can lead, and this process does
// not campaign before lead has returned.
func TestALeaseThatIsLostEndsLeadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, away := clienttest.NewScript(), true
		s.OnRenew = func(ctx context.Context, r []lease.RenewRequest) ([]lease.Renewed, error) {
			if away {
				return nil, clienttest.ErrDown
			}
			return s.Store.Renew(ctx, r)
		}
		a := stand(t, clienttest.Client(t, s, nil))
		began := time.Now()
		first := a.next(0)
		<-first.ctx.Done()
		clienttest.WantIs(t, "the cause", context.Cause(first.ctx), rowlock.ErrLost)
		if took := time.Since(began); took != clienttest.Trust {
			t.Errorf("ended after %s, want %s", took, clienttest.Trust)
		}
		away = false
		a.waits(10 * clienttest.TTL) // the key is free, and lead still runs
		if clienttest.IsHeld(t, s, election.Key("boss")) {
			t.Fatal("campaigns while its lead runs")
		}
		first.returns(first.ctx.Err())
		second := a.next(0) // at once
		if errs := a.told(); len(errs) != 1 || !errors.Is(errs[0], rowlock.ErrLost) ||
			errors.Is(errs[0], context.Canceled) {
			t.Errorf("OnError was told %v", errs)
		}
		if second.term <= first.term {
			t.Errorf("term %d follows term %d", second.term, first.term)
		}
		a.retire(second)
	})
}

// The lease is lost while the leader drains: the next leader may have begun.
func TestALeaseThatIsLostWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		s.OnRenew = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) {
			return nil, clienttest.ErrDown
		}
		a := stand(t, clienttest.Client(t, s, nil), election.Drain(time.Hour))
		first := a.next(0)
		a.stop(errShutdown)
		time.Sleep(clienttest.TTL)
		first.returns(nil)
		clienttest.WantIs(t, "Run", a.ended(0), rowlock.ErrLost)
	})
}

// A leader that shows no progress is replaced.
func TestALeaderThatIsStuckIsReplaced(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		a := stand(t, c, election.With(rowlock.MaxIdle(time.Minute)))
		first := a.next(0)
		b := stand(t, clienttest.Client(t, s, nil))
		<-first.ctx.Done()
		clienttest.WantIs(t, "the cause", context.Cause(first.ctx), rowlock.ErrIdle)
		second := b.next(clienttest.TTL + soon)
		first.returns(nil)
		time.Sleep(soon)
		a.wantTold(rowlock.ErrIdle)
		a.retire(nil)
		b.retire(second)
	})
}

func TestClosingTheClientEndsLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		c := clienttest.Client(t, s, nil)
		a := stand(t, c)
		first := a.next(0)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		<-first.ctx.Done()
		clienttest.WantIs(t, "the cause", context.Cause(first.ctx), rowlock.ErrUnlocked)
		first.returns(nil)
		clienttest.WantIs(t, "Run", a.ended(2*time.Second), rowlock.ErrClosed)
	})
}

// No panic leaves a leader that does not work, and none is swallowed.
func TestALeadThatPanicsOrExits(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		for _, opt := range []election.Option{election.With(), election.Prefer(false)} {
			func() {
				defer func() {
					if p := recover(); p != "out of luck" {
						t.Errorf("recovered %v", p)
					}
				}()
				_ = election.Run(t.Context(), c, "boss",
					func(context.Context, *rowlock.Lock) error { panic("out of luck") }, opt)
			}()
			if clienttest.IsHeld(t, s, election.Key("boss")) {
				t.Fatal("held after a panic")
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = election.Run(t.Context(), c, "boss",
					func(context.Context, *rowlock.Lock) error { runtime.Goexit(); return nil }, opt)
			}()
			<-done
			if clienttest.IsHeld(t, s, election.Key("boss")) {
				t.Fatal("held after Goexit")
			}
		}
	})
}

// The last work of a term and its end are one transaction.
func TestALeadThatResignsInItsTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewFencingStore()
		a := stand(t, clienttest.Client(t, s, nil))
		first := a.next(0)
		tx := s.Begin()
		if err := first.l.UnlockIn(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		tx.Commit()
		first.returns(nil)
		second := a.next(2 * time.Second)
		if errs := a.told(); len(errs) > 0 {
			t.Errorf("OnError was told %v", errs)
		}
		a.retire(second)
	})
}
