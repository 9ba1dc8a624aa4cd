package clienttest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// failingFirst fails the first write with err, and the others not.
func (s *tracing) failingFirst(err error) {
	var failed atomic.Bool
	s.writeBy(func(ctx context.Context, events []lease.TraceEvent) error {
		if !failed.Swap(true) {
			return err
		}
		return s.Store.WriteTrace(ctx, events)
	})
}

func TestWhatATraceLacksIsToldThoughNothingElseHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTracing()
		s.failingFirst(lease.ErrUnknown)
		c := Client(t, s, traced())
		Unlock(t, Take(t, c, "k"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if all := wantTimeline(t, c, rowlock.TraceFilter{}, "dropped  0"); all[0].Dropped != 2 {
			t.Errorf("of 2 events are missing %d", all[0].Dropped)
		}
		n := s.writes.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if more := s.writes.Load() - n; more != 0 {
			t.Errorf("nothing was written %d times", more)
		}
	})
}

func TestABatchThatIsRefusedForGoodKeepsBackNoLaterOne(t *testing.T) {
	for _, reason := range []error{
		lease.ErrCorrupt, lease.ErrInvalidKey, lease.ErrUnsupported, lease.ErrPool,
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newTracing()
			s.failingFirst(fmt.Errorf("%w: write the trace", reason))
			c := Client(t, s, traced())
			Unlock(t, Take(t, c, "k"))
			written()
			Unlock(t, Take(t, c, "k"))
			time.Sleep(time.Minute)
			synctest.Wait()
			if n := c.Stats(); n.TraceDropped != 2 || n.Traced != 2 {
				t.Errorf("%v: %d events are written and %d dropped, want 2 of each", reason, n.Traced, n.TraceDropped)
			}
		})
	}
}

// over is a store over another that has no trace.
type over struct{ lease.Store }

func (over) WriteTrace(context.Context, []lease.TraceEvent) error { return lease.ErrUnsupported }
func (over) ReadTrace(context.Context, lease.TraceFilter) ([]lease.TraceEvent, error) {
	return nil, lease.ErrUnsupported
}

func (over) SweepTrace(context.Context, lease.SweepOptions) (int64, error) {
	return 0, lease.ErrUnsupported
}

func TestATraceOverAStoreWithoutOneIsRefused(t *testing.T) {
	_, err := rowlock.New(over{memstore.New()}, traced())
	WantIs(t, "a store over one without a trace", err, rowlock.ErrUnsupported)
	Client(t, over{memstore.New()}, nil)
}

// stuck is a store whose trace hangs.
type stuck struct{ *Script }

func (s *stuck) WriteTrace(ctx context.Context, events []lease.TraceEvent) error {
	if len(events) == 0 {
		return nil
	}
	return hang(ctx, events)
}

// Both the reaper's lock and the trace's are held.
func TestCloseIsBoundedWithATraceToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stuck{Script: NewScript()}
		cfg := traced()
		cfg.Reaper.Off = false
		c, err := rowlock.New(s, cfg)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		for _, key := range []string{"reaper", "trace"} {
			if !Record(t, s, lease.Reserved+key).Held {
				t.Fatalf("no %s is elected", key)
			}
		}
		s.OnRelease = func(ctx context.Context, _ []lease.Lease) ([]lease.Released, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		Take(t, c, "k")
		time.Sleep(time.Second)
		began := time.Now()
		if err := c.Close(); err == nil {
			t.Error("a lock that could not be released is no error")
		}
		if took := time.Since(began); took > 12500*time.Millisecond {
			t.Errorf("Close took %s", took)
		}
	})
}

func TestForcedReleasesOfOneTimeAreAllListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		c := Client(t, s, nil)
		for i := range 5 {
			Take(t, c, fmt.Sprint("k", i))
			take(t, c, fmt.Sprint("k", i), byHand)
		}
		for limit := 1; limit <= 6; limit++ {
			got := make(map[string]bool)
			f := rowlock.TraceFilter{Prefix: "k", Limit: limit}
			for {
				page, err := c.Trace(t.Context(), f)
				if err != nil {
					t.Fatal(err)
				}
				if len(page) == 0 {
					break
				}
				for _, e := range page {
					if got[e.Key] {
						t.Fatalf("in pages of %d, %q is listed twice", limit, e.Key)
					}
					got[e.Key] = true
				}
				f.Before = page[len(page)-1]
			}
			if len(got) != 5 {
				t.Errorf("pages of %d list %d of 5 forced releases", limit, len(got))
			}
		}
	})
}
