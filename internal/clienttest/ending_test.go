package clienttest

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// stopped is a store of which nothing that a call does as it ends is answered, once it hangs.
type stopped struct {
	*Script
	hangs atomic.Bool
}

func newStopped() *stopped {
	s := &stopped{Script: NewScript()}
	s.OnDowngrade = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		if err := s.hang(ctx); err != nil {
			return nil, err
		}
		return s.Store.Downgrade(ctx, reqs)
	}
	s.OnRelease = func(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
		if err := s.hang(ctx); err != nil {
			return nil, err
		}
		return s.Store.Release(ctx, leases)
	}
	return s
}

func (s *stopped) hang(ctx context.Context) error {
	if s.hangs.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (s *stopped) Leave(ctx context.Context, tickets []lease.Lease) error {
	if err := s.hang(ctx); err != nil {
		return err
	}
	return s.Store.Leave(ctx, tickets)
}

func (s *stopped) Intend(
	ctx context.Context, by lease.Owner, keys []string, d time.Duration,
) error {
	if err := s.hang(ctx); err != nil {
		return err
	}
	return s.Store.Intend(ctx, by, keys, d)
}

func (s *stopped) Record(
	ctx context.Context, by lease.Party, chains []lease.Caller, d time.Duration,
) error {
	if err := s.hang(ctx); err != nil {
		return err
	}
	return s.Store.Record(ctx, by, chains, d)
}

func (s *stopped) Erase(ctx context.Context, chains []lease.Caller) error {
	if err := s.hang(ctx); err != nil {
		return err
	}
	return s.Store.Erase(ctx, chains)
}

// However many requests a call sends as it ends, none of which is answered, their bounds do not add
// up to more than docs/operations.md says.
func TestTheRequestsThatEndACallHaveOneBound(t *testing.T) {
	for name, c := range map[string]struct {
		fair bool
		call func(ctx context.Context, c *rowlock.Client, held *rowlock.Lock) error
	}{
		"a fair writer behind readers": {true, func(ctx context.Context, c *rowlock.Client, _ *rowlock.Lock) error {
			_, err := c.Lock(ctx, "read")
			return err
		}},
		"a writer behind readers that holds a key": {
			false,
			func(ctx context.Context, c *rowlock.Client, held *rowlock.Lock) error {
				ctx, cancel := held.Within(ctx)
				defer cancel()
				_, err := c.Lock(ctx, "read")
				return err
			},
		},
		"a reader that has joined one of two groups": {
			false,
			func(ctx context.Context, c *rowlock.Client, _ *rowlock.Lock) error {
				_, err := c.RLockAll(ctx, []string{"free", "read"})
				return err
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStopped()
				cfg := &rowlock.Config{Fair: c.fair, Reaper: rowlock.ReaperConfig{Off: true}}
				waits, other := Client(t, s, cfg), Client(t, s.Script, cfg)
				reader, held := share(t, other, "read"), Take(t, waits, "held")
				const within = 5 * time.Second
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				time.AfterFunc(within-time.Millisecond, func() { s.hangs.Store(true) })
				s.hangs.Store(name == "a reader that has joined one of two groups")
				began := time.Now()
				WantIs(t, "the call", c.call(ctx, waits, held), context.DeadlineExceeded)
				if late := time.Since(began) - within; late > 2500*time.Millisecond {
					t.Errorf("it has ended %s after its ctx", late)
				}
				s.hangs.Store(false)
				drop(t, reader)
				drop(t, held)
			})
		})
	}
}
