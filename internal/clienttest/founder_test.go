package clienttest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// distant is a store that takes a while to share a key, as a database does.
type distant struct {
	*memstore.Store
	made atomic.Int64 // reader groups
}

const roundTrip = 10 * time.Millisecond

func (d *distant) Share(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
	time.Sleep(roundTrip)
	return d.Store.Share(ctx, reqs)
}

func (d *distant) Downgrade(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	time.Sleep(roundTrip)
	d.made.Add(int64(len(reqs)))
	return d.Store.Downgrade(ctx, reqs)
}

// Readers that find a key free, or just taken by the one of them that makes its reader group, join
// that reader group at once: they do not wait for their next try.
func TestOfReadersThatComeAtOnceOneMakesTheGroup(t *testing.T) {
	for name, cfg := range map[string]*rowlock.Config{"": {}, "fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &distant{Store: memstore.New()}
				c, err := rowlock.New(store, cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				began := time.Now()
				var all sync.WaitGroup
				locks := make([]*rowlock.Lock, 50)
				for i := range locks {
					all.Go(func() {
						time.Sleep(time.Duration(i) * time.Millisecond)
						locks[i] = share(t, c, "k")
					})
				}
				all.Wait()
				if took := time.Since(began); took > 100*time.Millisecond || store.made.Load() != 1 {
					t.Errorf("%d readers took %s and made %d reader groups", len(locks), took, store.made.Load())
				}
				for _, l := range locks {
					drop(t, l)
				}
			})
		})
	}
}

// The readers behind one that makes a reader group end with their own contexts.
func TestAReaderBehindAFounderEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := rowlock.New(&distant{Store: memstore.New()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		first := make(chan *rowlock.Lock)
		go func() { first <- share(t, c, "k") }()
		ctx, cancel := context.WithTimeout(t.Context(), roundTrip+roundTrip/2)
		defer cancel()
		if l, err := c.RLock(ctx, "k"); err == nil || l != nil {
			t.Errorf("a reader whose context has ended has %v", l)
		}
		drop(t, <-first)
	})
}
