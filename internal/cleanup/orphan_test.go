package cleanup_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// noted notes the keys of each call that releases.
type noted struct {
	*memstore.Store
	mu   sync.Mutex
	keys [][]string
	hold func() // is called within a release
}

func (n *noted) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	var keys []string
	for _, l := range leases {
		keys = append(keys, l.Key)
	}
	slices.Sort(keys)
	n.mu.Lock()
	n.keys = append(n.keys, keys)
	n.mu.Unlock()
	if n.hold != nil {
		n.hold()
	}
	return n.Store.Release(ctx, leases)
}

func (n *noted) calls() [][]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.keys)
}

func cleaning(t *testing.T, s *noted) *cleanup.Cleaner {
	c := cleanup.Start(adapter.Of(s), false, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c
}

func same(a, b [][]string) bool { return slices.EqualFunc(a, b, slices.Equal[[]string]) }

func TestOrphansOfOneCallAreReleasedInOneRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &noted{Store: memstore.New()}
		c := cleaning(t, s)
		c.AddLeases(lease.Lease{Key: "a", Owner: lease.NewOwner()},
			lease.Lease{Key: "b", Owner: lease.NewOwner(), Shared: true})
		synctest.Wait()
		// A reader may have the key alone, to make a group of it.
		if got := s.calls(); !same(got, [][]string{{"a", "b", "b"}}) {
			t.Errorf("released %q", got)
		}
		if c.AddLeases(); len(s.calls()) != 1 {
			t.Error("a call that leaves nothing behind has a round")
		}
	})
}

// The pause is between two releases of one orphan, and not before the first of another.
func TestANewOrphanIsReleasedAtOnceAndTheOthersAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &noted{Store: memstore.New()}
		c := cleaning(t, s)
		began := time.Now()
		for _, key := range []string{"a", "b", "c"} {
			c.AddLeases(lease.Lease{Key: key, Owner: lease.NewOwner()})
			synctest.Wait()
		}
		if got := s.calls(); !same(got, [][]string{{"a"}, {"b"}, {"c"}}) || time.Since(began) != 0 {
			t.Errorf("released %q after %v", got, time.Since(began))
		}
		time.Sleep(251 * time.Millisecond)
		if got := s.calls()[3:]; !same(got, [][]string{{"a", "b", "c"}}) {
			t.Errorf("the next round has released %q", got)
		}
	})
}

func TestAnOrphanThatIsAddedWithinARoundIsReleasedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, busy := &noted{Store: memstore.New()}, make(chan struct{})
		s.hold = func() { <-busy }
		c := cleaning(t, s)
		owner := lease.NewOwner()
		c.AddLeases(lease.Lease{Key: "a", Owner: owner})
		synctest.Wait() // the round is under way
		c.AddLeases(lease.Lease{Key: "b", Owner: lease.NewOwner()})
		c.AddLeases(lease.Lease{Key: "a", Owner: owner}) // what is added again is new again
		close(busy)
		synctest.Wait()
		if got := s.calls(); !same(got, [][]string{{"a"}, {"a", "b"}}) {
			t.Errorf("released %q", got)
		}
	})
}

// However the additions come, each orphan is released until nothing can grant it, and no longer.
func TestEachOrphanIsReleasedUntilItsWindowIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &noted{Store: memstore.New()}
		c := cleaning(t, s)
		for range 20 {
			c.AddLeases(lease.Lease{Key: "k", Owner: lease.NewOwner()})
			time.Sleep(70 * time.Millisecond)
		}
		time.Sleep(8 * time.Second)
		if open, cleaned := c.Counts(); open != 0 || cleaned != 20 {
			t.Errorf("%d open, %d cleaned", open, cleaned)
		}
		n := len(s.calls())
		if n > 60 { // 20 additions, and a round every 250 ms
			t.Errorf("%d rounds", n)
		}
		if time.Sleep(time.Hour); len(s.calls()) != n {
			t.Errorf("%d rounds without orphans", len(s.calls())-n)
		}
	})
}

// busy is a store that has something under way for so long.
type busy struct {
	*memstore.Store
	until time.Duration
}

func (b busy) Settle(ctx context.Context) {
	select {
	case <-time.After(b.until):
	case <-ctx.Done():
	}
}

// alone is a store that cannot tell.
type alone struct{ lease.Store }

func TestStopSaysWhatMayBeGrantedYet(t *testing.T) {
	for name, c := range map[string]struct {
		store lease.Store
		bound time.Duration
		wants error
	}{
		"settled in time":  {busy{memstore.New(), time.Second}, 2 * time.Second, nil},
		"settled too late": {busy{memstore.New(), 2 * time.Second}, time.Second, lease.ErrUnknown},
		"after its window": {alone{memstore.New()}, 8 * time.Second, nil},
		"in its window":    {alone{memstore.New()}, 6500 * time.Millisecond, lease.ErrUnknown},
		"nothing was left": {nil, time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := c.store
				if s == nil {
					s = alone{memstore.New()}
				}
				cleaner := cleanup.Start(adapter.Of(s), false, slog.New(slog.DiscardHandler))
				if c.store != nil {
					cleaner.AddLeases(lease.Lease{Key: "k", Owner: lease.NewOwner()})
				}
				ctx, cancel := context.WithTimeout(t.Context(), c.bound)
				defer cancel()
				if err := cleaner.Stop(ctx); !errors.Is(err, c.wants) {
					t.Errorf("Stop: %v, want %v", err, c.wants)
				}
			})
		})
	}
}
