package observe

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

func hold(t *testing.T, s lease.Store, key string) lease.Lease {
	t.Helper()
	r := lease.AcquireRequest{Key: key, Owner: lease.NewOwner(), TTL: time.Minute}
	a, err := s.Acquire(t.Context(), []lease.AcquireRequest{r})
	if err != nil || !a[0].Granted {
		t.Fatal(a, err)
	}
	return lease.Lease{Key: key, Owner: r.Owner, Token: a[0].Token}
}

// What a poller keeps grows with what its readers want, and not with what the client does besides.
func TestAPollerKeepsNoKeyThatNoReaderWants(t *testing.T) {
	for _, prefixes := range []int{1, mostListings + 1} {
		synctest.Test(t, func(t *testing.T) {
			s, closed := memstore.New(), make(chan struct{})
			p := New(&Poller{Store: s, Every: time.Second, Closed: closed})
			ctx, cancel := context.WithCancel(t.Context())
			for i := range prefixes {
				go func() {
					for range p.Watch(ctx, fmt.Sprintf("a%d/", i)) {
					}
				}()
			}
			for i := range 100 {
				hold(t, s, fmt.Sprintf("b/%d", i))
			}
			hold(t, s, "a0/held")
			synctest.Wait()
			for i := range 100 {
				p.Lost(lease.Lease{Key: fmt.Sprintf("b/%d", i), Token: 1}, "")
				p.Lost(lease.Lease{Key: fmt.Sprintf("a0/gone %d", i), Token: 1}, "") // never listed
			}
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if len(p.last.held) != 1 || len(p.lost) != 0 {
				t.Errorf("%d prefixes: %d held keys and %d lost ones are kept, want one and none",
					prefixes, len(p.last.held), len(p.lost))
			}
			cancel()
			close(closed)
			p.Stop()
			synctest.Wait()
		})
	}
}

// failing fails in what says how leases have ended, while told to.
type failing struct {
	*memstore.Store
	fails atomic.Bool
}

func (f *failing) Inspect(ctx context.Context, filter lease.Filter) ([]lease.Record, error) {
	if f.fails.Load() && len(filter.Keys) > 0 {
		return nil, lease.ErrBusy
	}
	return f.Store.Inspect(ctx, filter)
}

// A listing fails after an operator has taken a lock away: the next tells that all the same.
func TestAForcedReleaseIsToldAfterAListingThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, closed := &failing{Store: memstore.New()}, make(chan struct{})
		p := New(&Poller{Store: s, Every: time.Second, Closed: closed})
		var told []lease.EventKind
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for e, err := range p.Watch(t.Context(), "") {
				if err == nil {
					told = append(told, e.Kind)
				}
			}
		}()
		hold(t, s, "k")
		time.Sleep(3 * time.Second)
		s.fails.Store(true)
		r := lease.ForceRequest{ID: lease.NewOwner(), Key: "k", By: "ops", Reason: "stuck"}
		if _, err := s.ForceRelease(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		s.fails.Store(false)
		time.Sleep(3 * time.Second)
		close(closed)
		p.Stop()
		if <-ended; len(told) == 0 || told[len(told)-1] != lease.EventForced {
			t.Errorf("told %v", told)
		}
	})
}

// between takes a lock away behind the nth listing, before its round reads the records of that.
type between struct {
	*memstore.Store
	n atomic.Int32
}

func (b *between) Inspect(ctx context.Context, f lease.Filter) ([]lease.Record, error) {
	rows, err := b.Store.Inspect(ctx, f)
	if f.Held && b.n.Add(-1) == 0 {
		r := lease.ForceRequest{ID: lease.NewOwner(), Key: "k", By: "ops", Reason: "stuck"}
		_, err = b.ForceRelease(ctx, r)
	}
	return rows, err
}

// A lock that an operator takes away while a round is under way was called released besides, and by
// the first round nothing else.
func TestAForcedReleaseBehindAListingIsToldOnce(t *testing.T) {
	for _, behind := range []int32{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			s, closed := &between{Store: memstore.New()}, make(chan struct{})
			s.n.Store(behind)
			hold(t, s, "k")
			p := New(&Poller{Store: s, Every: time.Second, Closed: closed})
			var told []lease.EventKind
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for e, err := range p.Watch(t.Context(), "") {
					if err != nil {
						t.Error(err)
					}
					told = append(told, e.Kind)
				}
			}()
			time.Sleep(6 * time.Second)
			synctest.Wait()
			close(closed)
			p.Stop()
			if <-ended; !slices.Equal(told, []lease.EventKind{lease.EventGranted, lease.EventForced}) {
				t.Errorf("behind listing %d: told %v", behind, told)
			}
		})
	}
}
