package clienttest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/lossy"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// resent carries out what makes a ticket or a member, and once more two seconds later: its first
// try was under way for long, and had no answer. The store that tried again says so.
type resent struct{ *memstore.Store }

// grouped is a key of contexts: what is called when a call with it has made a reader group.
type grouped struct{}

func (s *resent) Downgrade(
	ctx context.Context, reqs []lease.RenewRequest,
) ([]lease.Renewed, error) {
	if f, ok := ctx.Value(grouped{}).(func()); ok {
		f()
		time.Sleep(time.Nanosecond) // it has begun
	}
	return s.Store.Downgrade(ctx, reqs)
}

func (s *resent) Pass(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
	if leases[0].Key == "slow" {
		time.Sleep(time.Second)
	}
	return s.Store.Pass(ctx, leases)
}

func (s *resent) Claim(
	ctx context.Context, reqs []lease.AcquireRequest,
) ([]lease.Acquired, error) {
	time.AfterFunc(2*time.Second, func() { _, _ = s.Store.Claim(context.Background(), reqs) })
	return lossy.Repeated(s.Store.Claim(ctx, reqs))
}

func (s *resent) Join(ctx context.Context, tickets []lease.Ticket) (bool, error) {
	time.AfterFunc(2*time.Second, func() { _, _ = s.Store.Join(context.Background(), tickets) })
	_, err := s.Store.Join(ctx, tickets)
	return true, err
}

func (s *resent) Share(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	time.AfterFunc(2*time.Second, func() { _, _ = s.Store.Share(context.Background(), reqs) })
	return lossy.Repeated(s.Store.Share(ctx, reqs))
}

// Settle returns when the copies have arrived.
func (s *resent) Settle(context.Context) { time.Sleep(2 * time.Second) }

// What a copy of a request makes after its caller has left is removed, long before it would end.
func TestACopyThatArrivesAfterItsCallerIsCleanedUp(t *testing.T) {
	for name, call := range map[string]func(t *testing.T, c, other *rowlock.Client) (unlock func()){
		"the ticket of a waiter that gave up": func(t *testing.T, c, other *rowlock.Client) func() {
			l := Take(t, other, "k")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.Lock(ctx, "k"); err == nil {
				t.Fatal("it has the key that another holds")
			}
			return func() { Unlock(t, l) }
		},
		"the ticket of a waiter that was served": func(t *testing.T, c, other *rowlock.Client) func() {
			l := Take(t, other, "k")
			waiting := WaitIn(t, t.Context(), c, "k")
			time.Sleep(time.Second)
			Unlock(t, l)
			got := <-waiting
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			Unlock(t, got.Lock)
			return nil
		},
		"a reader that has left": func(t *testing.T, c, other *rowlock.Client) func() {
			stays, err := other.RLock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			leaves, err := c.RLock(t.Context(), "k")
			if err != nil {
				t.Fatal(err)
			}
			Unlock(t, leaves)
			return func() { Unlock(t, stays) }
		},
		"the key alone, of a reader whose client is closed": func(t *testing.T, c, _ *rowlock.Client) (unlock func()) {
			Take(t, c, "slow") // Close does not end before this was released
			closing := context.WithValue(t.Context(), grouped{}, func() { go c.Close() })
			if _, err := c.RLock(closing, "k"); !errors.Is(err, rowlock.ErrClosed) {
				t.Errorf("RLock: %v", err)
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memstore.New()
				cfg := func() *rowlock.Config {
					return &rowlock.Config{Fair: true, TTL: 5 * time.Minute, Reaper: rowlock.ReaperConfig{Off: true}}
				}
				c, other := Client(t, &resent{s}, cfg()), Client(t, s, cfg())
				unlock := call(t, c, other)
				time.Sleep(3 * time.Second) // the copy has arrived
				if unlock != nil {
					unlock()
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				l, err := other.Lock(ctx, "k")
				if err != nil {
					t.Fatalf("it blocks the key: %v", err)
				}
				Unlock(t, l)
			})
		})
	}
}
