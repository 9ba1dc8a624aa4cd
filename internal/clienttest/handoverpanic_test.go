package clienttest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// panicking is a store whose driver panics once.
type panicking struct {
	*memstore.Store
	in atomic.Pointer[string]
}

func (p *panicking) check(what string) {
	if at := p.in.Load(); at != nil && *at == what && p.in.CompareAndSwap(at, nil) {
		panic("a driver's, in " + what)
	}
}

func (p *panicking) HandOver(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
	p.check("HandOver")
	return p.Store.HandOver(ctx, items)
}

func (p *panicking) Release(ctx context.Context, leases []lease.Lease) ([]lease.Released, error) {
	p.check("Release")
	return p.Store.Release(ctx, leases)
}

func (p *panicking) Pass(ctx context.Context, leases []lease.Lease) ([]lease.Passed, error) {
	p.check("Pass")
	return p.Store.Pass(ctx, leases)
}

// unlocks has the driver panic in the holder's Unlock, whose program recovers. waits says that the
// next owner does already. It fails unless that has the key long before the lease would expire.
func unlocks(t *testing.T, what string, fair, waits bool) {
	store := &panicking{Store: memstore.New()}
	c := Client(t, store, &rowlock.Config{
		TTL: TTL, Fair: fair, Logger: slog.New(slog.DiscardHandler),
		Reaper: rowlock.ReaperConfig{Off: true},
	})
	held, err := c.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	done, unlocked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if !waits {
			<-unlocked
		}
		free(t, c, "k")
	}()
	synctest.Wait()
	store.in.Store(&what)
	panics(t, func() { _ = held.Unlock(t.Context()) })
	close(unlocked)
	<-done
}

func TestADriverThatPanicsInUnlockForgetsNoWaiter(t *testing.T) {
	for what, fair := range map[string]bool{"HandOver": false, "Pass": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { unlocks(t, what, fair, true) })
		})
	}
}

func TestADriverThatPanicsInUnlockLeavesNoLease(t *testing.T) {
	for what, fair := range map[string]bool{"Release": false, "Pass": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { unlocks(t, what, fair, false) })
		})
	}
}
