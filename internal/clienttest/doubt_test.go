package clienttest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// oneLost loses the first claim with a ticket on its way.
type oneLost struct {
	*memstore.Store
	tickets sync.Map // by owner
	lost    chan lease.AcquireRequest
	one     sync.Once
}

func (s *oneLost) Join(ctx context.Context, tickets []lease.Ticket) (bool, error) {
	for _, t := range tickets {
		s.tickets.Store(t.Owner, true)
	}
	return s.Store.Join(ctx, tickets)
}

func (s *oneLost) Claim(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	lose := false
	if _, ticket := s.tickets.Load(reqs[0].Owner); ticket {
		s.one.Do(func() { lose = true })
	}
	if !lose {
		return s.Store.Claim(ctx, reqs)
	}
	s.lost <- reqs[0]
	<-ctx.Done()
	return nil, fmt.Errorf("%w: %w", lease.ErrUnknown, ctx.Err())
}

// A waiter's claim has no answer, and a waiter of the same process passes the key to it meanwhile.
// Nothing releases the lease under its holder; and if the claim arrives after its Unlock, what it
// is granted is given back.
func TestAClaimWithoutAnswerIsTheTicketsOwn(t *testing.T) {
	type lock func(*rowlock.Client, context.Context) (*rowlock.Lock, error)
	for name, first := range map[string]lock{
		"Lock":  func(c *rowlock.Client, ctx context.Context) (*rowlock.Lock, error) { return c.Lock(ctx, "k") },
		"RLock": func(c *rowlock.Client, ctx context.Context) (*rowlock.Lock, error) { return c.RLock(ctx, "k") },
		"LockAny": func(c *rowlock.Client, ctx context.Context) (*rowlock.Lock, error) {
			return c.LockAny(ctx, []string{"k", "other"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &oneLost{Store: memstore.New(), lost: make(chan lease.AcquireRequest, 1)}
				c := Client(t, s, &rowlock.Config{Fair: true, Reaper: rowlock.ReaperConfig{Off: true}, TTL: TTL})
				holder, other := Another(t, s.Store, "k", TTL), Another(t, s.Store, "other", time.Hour)
				ctx, cancel := context.WithCancel(t.Context())
				got := make(chan *rowlock.Lock, 1)
				go func() {
					l, err := first(c, ctx)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					got <- l
				}()
				synctest.Wait()
				if _, err := s.Store.Release(t.Context(), []lease.Lease{holder}); err != nil {
					t.Fatal(err)
				}
				claim := <-s.lost
				before, err := c.Lock(t.Context(), "k", rowlock.Priority(10))
				if err != nil {
					t.Fatal(err)
				}
				Unlock(t, before) // passes the key on
				cancel()
				l := <-got
				if l == nil {
					return
				}
				time.Sleep(TTL / 2) // the orphan cleaner is through
				if r := Record(t, s.Store, "k"); l.Context().Err() != nil || !r.Held || r.Token != l.Token() {
					t.Errorf("the lock of token %d has ended: %v; the row is %+v", l.Token(), context.Cause(l.Context()), r)
				}
				Unlock(t, l)
				if late, err := s.Store.Claim(t.Context(), []lease.AcquireRequest{claim}); err != nil || !late[0].Granted {
					t.Fatalf("the late claim: %+v, %v", late, err)
				}
				time.Sleep(time.Second)
				if IsHeld(t, s.Store, "k") {
					t.Error("what the late claim was granted stays locked")
				}
				if _, err := s.Store.Release(t.Context(), []lease.Lease{other}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
