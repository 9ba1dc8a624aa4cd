package clienttest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// overslow is a store that once passes a key on when most of a lease is over, as after a failover.
type overslow struct {
	*memstore.Store
	late time.Duration
}

func (s *overslow) wait() {
	late := s.late
	s.late = 0
	time.Sleep(late)
}

func (s *overslow) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	s.wait()
	return s.Store.HandOver(context.WithoutCancel(ctx), items)
}

func (s *overslow) Pass(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
	s.wait()
	return s.Store.Pass(context.WithoutCancel(ctx), leases)
}

// The next owner was told that its lease is lost, of which it had waited for nothing but the answer
// to the Unlock before.
func TestALeaseThatAHandOverHasUsedUpIsNotGranted(t *testing.T) {
	const ttl = 4 * time.Second
	for name, fair := range map[string]bool{"hand-over": false, "passed on": true, "passed on, of any key": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &overslow{Store: memstore.New()}
				c := Client(t, store, &rowlock.Config{
					TTL: ttl, Fair: fair, Logger: slog.New(slog.DiscardHandler),
					Reaper: rowlock.ReaperConfig{Off: true},
				})
				held, other := Take(t, c, "k"), Take(t, c, "other")
				got := make(chan Waited, 1)
				go func() {
					var w Waited
					if name == "passed on, of any key" {
						w.Lock, w.Err = c.LockAny(t.Context(), []string{"other", "k"})
					} else {
						w.Lock, w.Err = c.Lock(t.Context(), "k")
					}
					got <- w
				}()
				synctest.Wait()
				store.late = ttl * 9 / 10
				Unlock(t, held)
				unlocked := time.Now()
				w := <-got
				if took := time.Since(unlocked); w.Err != nil || took > time.Second {
					t.Fatalf("after %s: %v", took, w.Err)
				}
				time.Sleep(2 * ttl)
				WantAlive(t, w.Lock)
				Unlock(t, w.Lock)
				free(t, c, "k")
				Unlock(t, other)
			})
		})
	}
}
