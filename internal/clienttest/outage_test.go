package clienttest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

var errGone = errors.New("connection refused")

// server is a Script whose bids can fail as those to a server that is gone, and its reads too.
type server struct {
	*Script
	down, blind atomic.Bool
	bids        atomic.Int64 // that have failed
}

func newServer(s *Script) *server {
	gone := &server{Script: s}
	s.OnAcquire = gone.bid(s.Store.Acquire)
	s.OnAcquireAll = gone.bid(s.Store.AcquireAll)
	s.OnInspect = func(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
		if gone.blind.Load() {
			return nil, adapter.Outage(errGone)
		}
		return s.Store.Inspect(ctx, f)
	}
	return gone
}

type bid = func(context.Context, []lease.AcquireRequest) ([]lease.Acquired, error)

func (s *server) bid(f bid) bid {
	return func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		if s.down.Load() {
			s.bids.Add(1)
			return nil, adapter.Outage(errGone)
		}
		return f(ctx, reqs)
	}
}

// fail waits until bids fail.
func (s *server) fail() {
	before := s.bids.Load()
	s.down.Store(true)
	for s.bids.Load() == before {
		time.Sleep(time.Millisecond)
	}
}

// Neither bids nor polls get through: nothing else would wake the call.
func TestAnOutageThatLastsEndsAWaitAfterTheTTL(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		gone := newServer(s)
		Another(t, s, "k", TTL)
		ctx, cancel := context.WithTimeout(t.Context(), 100*TTL)
		defer cancel()
		waiting := WaitIn(t, ctx, c, "k")
		time.Sleep(TTL / 2)
		gone.fail()
		gone.blind.Store(true)
		began := time.Now()
		got := <-waiting
		WantIs(t, "the call", got.Err, errGone)
		if took := time.Since(began); took < TTL-time.Second || took > 2*TTL {
			t.Errorf("it ended after %s, TTL %s", took, TTL)
		}
	})
}

// The second outage of a long wait is bounded from its own beginning.
func TestAWaitOutlastsASecondOutage(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		gone := newServer(s)
		Another(t, s, "k", TTL)
		waiting := Wait(t, c, "k")
		time.Sleep(TTL / 2)
		gone.fail()
		Another(t, s.Store, "k", 5*TTL)
		gone.down.Store(false)
		time.Sleep(4 * TTL)
		gone.fail()
		time.Sleep(TTL / 4)
		gone.down.Store(false)
		got := <-waiting
		WantIs(t, "the call", got.Err)
		Unlock(t, got.Lock)
	})
}

// The outage is long over when the caller's time is.
func TestAfterAnOutageACallThatGivesUpSaysThatTheKeyIsHeld(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		gone := newServer(s)
		Another(t, s, "k", TTL)
		ctx, cancel := context.WithTimeout(t.Context(), 20*TTL)
		defer cancel()
		waiting := WaitIn(t, ctx, c, "k")
		time.Sleep(TTL / 2)
		gone.fail()
		Another(t, s.Store, "k", 50*TTL)
		gone.down.Store(false)
		WantIs(t, "the call", (<-waiting).Err, rowlock.ErrHeld, context.DeadlineExceeded)
	})
}

// A connection that could not be made because the caller's time was over is no outage.
func TestACallThatGivesUpWhileItConnectsSaysThatTheKeyIsHeld(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		Another(t, s, "k", TTL)
		var hangs atomic.Bool
		hang := func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
			if !hangs.Load() {
				return s.Store.Acquire(ctx, reqs)
			}
			<-ctx.Done()
			return nil, adapter.Outage(ctx.Err())
		}
		s.OnAcquire, s.OnAcquireAll = hang, hang
		ctx, cancel := context.WithTimeout(t.Context(), 2*TTL)
		defer cancel()
		waiting := WaitIn(t, ctx, c, "k")
		time.Sleep(TTL / 2)
		hangs.Store(true)
		WantIs(t, "the call", (<-waiting).Err, rowlock.ErrHeld, context.DeadlineExceeded)
	})
}

// lasting has a call wait while neither bids nor polls get through, for a second less than it waits
// for them.
func lasting(t *testing.T, gone *server, wait func() (*rowlock.Lock, error), outage func()) <-chan Waited {
	t.Helper()
	done := make(chan Waited, 1)
	go func() {
		l, err := wait()
		done <- Waited{l, err}
	}()
	synctest.Wait()
	gone.down.Store(true)
	outage()
	for gone.bids.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	gone.blind.Store(true)
	time.Sleep(TTL - time.Second)
	return done
}

// A hand-over may fail after the outage when its next owner has found the key expired.
func TestACallerThatGetsItsKeyDuringAHandOverToItIsNotQueuedAgain(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		gone, late := newServer(s), make(chan struct{})
		s.OnRenew = func(context.Context, []lease.RenewRequest) ([]lease.Renewed, error) { return nil, errGone }
		s.OnHandOver = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
			<-late
			return s.Store.HandOver(context.Background(), items)
		}
		l := Take(t, c, "k")
		waiting := lasting(t, gone, func() (*rowlock.Lock, error) { return c.Lock(t.Context(), "k") },
			func() { <-l.Context().Done() })
		unlocked := make(chan error, 1)
		go func() { unlocked <- l.Unlock(t.Context()) }()
		synctest.Wait()
		gone.down.Store(false)
		got := <-waiting
		WantIs(t, "the call that waited", got.Err)
		close(late)
		WantIs(t, "Unlock", <-unlocked, rowlock.ErrLost)
		gone.blind.Store(false)
		Unlock(t, got.Lock)
		ctx, cancel := context.WithTimeout(t.Context(), 10*TTL)
		defer cancel()
		next, err := c.Lock(ctx, "k")
		WantIs(t, "the next call", err)
		if err == nil {
			Unlock(t, next)
		}
	})
}

func TestACallForAnyThatAsksByItselfIsHandedNoSecondKey(t *testing.T) {
	Bubble(t, func(t *testing.T, c *rowlock.Client, s *Script) {
		gone, late := newServer(s), make(chan struct{})
		s.OnAcquireAny = func(ctx context.Context, reqs []lease.AcquireRequest, n int) ([]lease.Acquired, error) {
			if gone.down.Load() {
				gone.bids.Add(1)
				return nil, adapter.Outage(errGone)
			}
			if gone.blind.Load() {
				<-late
			}
			return s.Store.AcquireAny(ctx, reqs, n)
		}
		mine := Take(t, c, "b")
		Another(t, s.Store, "a", 10*TTL)
		waiting := lasting(t, gone, func() (*rowlock.Lock, error) {
			return c.LockAny(t.Context(), []string{"a", "b"})
		}, func() { s.Expire("a") })
		gone.down.Store(false)
		time.Sleep(2 * time.Second)
		Unlock(t, mine)
		close(late)
		got := <-waiting
		WantIs(t, "LockAny", got.Err)
		for _, key := range []string{"a", "b"} {
			if held := IsHeld(t, s.Store, key); held != (key == got.Lock.Key()) {
				t.Errorf("the call has %q, and %q is held: %t", got.Lock.Key(), key, held)
			}
		}
		gone.blind.Store(false)
		Unlock(t, got.Lock)
	})
}
