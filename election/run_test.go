package election_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/election"
	"github.com/rowlockdb/rowlock/internal/clienttest"
	"github.com/rowlockdb/rowlock/lease"
)

var errOwn = errors.New("the application's own")

const soon = time.Second // more than a poll

func TestOneCandidateLeadsAndTheNextWhenItEnds(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		a := stand(t, c)
		first := a.next(0)
		b := stand(t, clienttest.Client(t, s, nil))
		b.waits(10 * clienttest.TTL)
		first.leads(t, s)
		a.retire(first)
		second := b.next(soon)
		if second.term <= first.term {
			t.Errorf("term %d follows term %d", second.term, first.term)
		}
		b.retire(second)
		if clienttest.IsHeld(t, s, election.Key("boss")) {
			t.Error("held after the last candidate has left")
		}
	})
}

type valueKey struct{}

// lead's ctx is that of Run in its values, and carries the lock.
func TestTheCtxOfLead(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "kept"))
		err := election.Run(ctx, c, "boss", func(ctx context.Context, l *rowlock.Lock) error {
			if ctx.Value(valueKey{}) != "kept" {
				t.Error("the values of the ctx of Run are lost")
			}
			_, err := c.Lock(ctx, election.Key("boss"))
			clienttest.WantIs(t, "Lock of the same key", err, rowlock.ErrDeadlock)
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}, election.With(rowlock.Note("by lead")))
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// A leader that has nothing to do any more leaves the turn to another, and stands again.
func TestALeadThatReturnsResigns(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		a := stand(t, c)
		first := a.next(0)
		b := stand(t, clienttest.Client(t, s, nil))
		first.returns(nil)
		clienttest.WantIs(t, "the ctx of a lead that has returned", func() error {
			<-first.ctx.Done()
			return context.Cause(first.ctx)
		}(), rowlock.ErrUnlocked)
		second := b.next(soon)
		a.waits(clienttest.TTL)
		second.returns(errOwn)
		third := a.next(soon)
		b.wantTold(errOwn)
		if errs := a.told(); len(errs) != 0 {
			t.Errorf("OnError was told %v", errs)
		}
		b.retire(nil)
		third.returns(nil)
		a.next(2 * time.Second).returns(nil) // alone, after a rest
		a.retire(nil)
	})
}

// A lead that fails at once does not turn in a circle.
func TestALeadThatFailsRestsLonger(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		a := stand(t, c)
		fails := func(lasts time.Duration) time.Duration {
			l := a.next(time.Minute)
			time.Sleep(lasts)
			ended := time.Now()
			l.returns(errOwn)
			a.took <- a.next(time.Minute)
			return time.Since(ended)
		}
		const fifth = 0.21
		for _, want := range []float64{1, 2, 4, 8, 16, 30, 30} {
			if got := fails(0).Seconds(); got < want*(1-fifth) || got > want*(1+fifth) {
				t.Errorf("rested for %.1f s, want %.0f s", got, want)
			}
		}
		if got := fails(time.Minute).Seconds(); got > 1.2 {
			t.Errorf("rested for %.1f s after a long term", got)
		}
		a.next(0).returns(nil)
		a.retire(nil)
	})
}

// A database that is away ends no candidate, and when it is back one leads soon.
func TestADatabaseThatIsAwayEndsNoCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, back := clienttest.NewScript(), time.Now().Add(time.Hour)
		s.OnAcquire = func(ctx context.Context, r []lease.AcquireRequest) ([]lease.Acquired, error) {
			if time.Now().Before(back) {
				return nil, clienttest.ErrDown
			}
			return s.Store.Acquire(ctx, r)
		}
		a := stand(t, clienttest.Client(t, s, nil))
		l := a.next(2 * time.Hour)
		if late := time.Since(back); late > 3*time.Second {
			t.Errorf("leads %s after the database was back", late)
		}
		errs := a.told()
		if len(errs) < 1000 || len(errs) > 3000 {
			t.Errorf("OnError was told %d times in an hour", len(errs))
		}
		clienttest.WantIs(t, "OnError", errs[0], clienttest.ErrDown)
		if !strings.Contains(errs[0].Error(), `rowlock: election "boss": campaigning goes on: `) {
			t.Errorf("OnError: %v", errs[0])
		}
		a.retire(l)
	})
}

// ctx ends while the database is away: Run must not wait for it.
func TestACandidateEndsWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		s.OnAcquire = func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error) {
			return nil, clienttest.ErrDown
		}
		a := stand(t, clienttest.Client(t, s, nil))
		time.Sleep(time.Minute)
		a.stop(nil)
		if err := a.ended(0); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// The grant comes when ctx has ended: lead is not called, and the key is free.
func TestAGrantThatRacesWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := clienttest.NewScript()
		s.OnAcquire = func(ctx context.Context, r []lease.AcquireRequest) ([]lease.Acquired, error) {
			answers, err := s.Store.Acquire(context.WithoutCancel(ctx), r)
			time.Sleep(time.Second)
			return answers, err
		}
		for _, opt := range []election.Option{
			election.With(), election.With(rowlock.MinHold(time.Hour)), election.Prefer(false),
			election.Prefer(true),
		} {
			a := stand(t, clienttest.Client(t, s, nil), opt)
			time.Sleep(time.Second / 2)
			a.stop(nil)
			if err := a.ended(time.Minute); err != nil || len(a.took) > 0 {
				t.Errorf("Run: %v; led: %d times", err, len(a.took))
			}
			synctest.Wait()
			if clienttest.IsHeld(t, s, election.Key("boss")) {
				t.Fatal("held after Run")
			}
		}
	})
}

func TestWhatEndsRun(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, s *clienttest.Script) {
		never := func(context.Context, *rowlock.Lock) error {
			t.Error("lead was called")
			return nil
		}
		l := clienttest.Take(t, c, election.Key("boss"))
		err := election.Run(l.Context(), c, "boss", never)
		clienttest.WantIs(t, "with a ctx that holds the key", err, rowlock.ErrDeadlock)
		closing := clienttest.Client(t, s, nil)
		a := stand(t, closing)
		if err := closing.Close(); err != nil {
			t.Error(err)
		}
		clienttest.WantIs(t, "after Close", a.ended(soon), rowlock.ErrClosed)
		clienttest.Unlock(t, l)
		clienttest.WantIs(t, "a closed client",
			election.Run(t.Context(), closing, "boss", never), rowlock.ErrClosed)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := election.Run(ended, c, "boss", never); err != nil {
			t.Errorf("with a ctx that has ended: %v", err)
		}
	})
}

// The longest rest there is, of a candidate that is to lead once, is one.
func TestTheLongestRestDoesNotOverflow(t *testing.T) {
	clienttest.Bubble(t, func(t *testing.T, c *rowlock.Client, _ *clienttest.Script) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		led := 0
		_ = election.Run(ctx, c, "once", func(context.Context, *rowlock.Lock) error {
			if led++; led == 100 {
				cancel()
			}
			return nil
		}, election.Rest(math.MaxInt64))
		if led != 1 {
			t.Errorf("led %d times in a day", led)
		}
	})
}
