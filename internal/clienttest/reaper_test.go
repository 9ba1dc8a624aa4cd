package clienttest

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// One of several processes removes dead rows, and goes on doing so.
func TestOneReaperSweeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &swept{Store: memstore.New()}
		cfg := &rowlock.Config{}
		cfg.Reaper.Retention = 10 * time.Minute
		for range 5 {
			Client(t, s, cfg)
		}
		off := &rowlock.Config{}
		off.Reaper.Off = true
		c := Client(t, s, off)
		if err := Take(t, c, "dead").Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		Take(t, c, "alive")
		time.Sleep(time.Hour)
		if n := s.sweeps.Load(); n < 55 || n > 67 {
			t.Errorf("%d sweeps in an hour, want one a minute", n)
		}
		if r := Record(t, s, "dead"); r.Key != "" {
			t.Errorf("the dead row is there: %+v", r)
		}
		if !IsHeld(t, s, "alive") {
			t.Error("a live row is gone")
		}
		if got := s.retention.Load(); got != int64(10*time.Minute) {
			t.Errorf("swept with a retention of %v", time.Duration(got))
		}
	})
}

func TestReaperCanBeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &swept{Store: memstore.New()}
		cfg := &rowlock.Config{}
		cfg.Reaper.Off = true
		Client(t, s, cfg)
		time.Sleep(24 * time.Hour)
		if n := s.sweeps.Load(); n != 0 {
			t.Errorf("%d sweeps", n)
		}
	})
}

// The process that sweeps closes its client: it resigns, and another process goes on.
func TestReaperResignsWhenItsClientIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &swept{Store: memstore.New()}
		first := Client(t, s, &rowlock.Config{})
		time.Sleep(time.Minute)
		Client(t, s, &rowlock.Config{})
		time.Sleep(10 * time.Minute)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		records, err := s.Inspect(t.Context(), lease.Filter{Held: true})
		if err != nil || len(records) != 0 {
			t.Errorf("held after Close: %+v, %v", records, err)
		}
		before := s.sweeps.Load()
		time.Sleep(10 * time.Minute)
		if n := s.sweeps.Load() - before; n < 9 {
			t.Errorf("%d sweeps in ten minutes", n)
		}
	})
}

// MaxHold and MaxIdle are for workers that are stuck; a sweep takes as long as the table is large.
func TestNoLimitOfAHoldEndsASweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &swept{Store: memstore.New(), takes: 10 * time.Minute}
		Client(t, s, &rowlock.Config{MaxHold: time.Minute, MaxIdle: time.Second})
		time.Sleep(time.Hour)
		if n, cut := s.sweeps.Load(), s.cut.Load(); n < 5 || cut > 0 {
			t.Errorf("%d of %d sweeps were ended early", cut, n)
		}
	})
}

// swept counts the sweeps of a store.
type swept struct {
	*memstore.Store
	takes                  time.Duration
	sweeps, cut, retention atomic.Int64
}

func (s *swept) Sweep(ctx context.Context, opts lease.SweepOptions) (int64, error) {
	s.sweeps.Add(1)
	s.retention.Store(int64(opts.Retention))
	select {
	case <-ctx.Done():
		s.cut.Add(1)
		return 0, ctx.Err()
	case <-time.After(s.takes):
	}
	return s.Store.Sweep(ctx, opts)
}
