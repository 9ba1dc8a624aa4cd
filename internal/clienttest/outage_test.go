package clienttest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
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
