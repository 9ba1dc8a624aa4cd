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

// A reader of a key that another process has locked waits for it in the queue, and one of a free
// key makes its group, however many groups of other keys the client makes at the time.
func TestGroupsOfOtherKeysKeepNoReaderFromItsQueue(t *testing.T) {
	for name, fair := range map[string]bool{"": false, "fair": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				c := Client(t, s, &rowlock.Config{Fair: fair, Reaper: rowlock.ReaperConfig{Off: true}})
				s.OnShare = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
					if reqs[0].Key != "other" { // its group is made while the call asks
						time.Sleep(roundTrip)
						drop(t, share(t, c, "other"))
					}
					return s.Store.Share(ctx, reqs)
				}
				Another(t, s.Store, "held", time.Hour)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				var shown atomic.Int64
				var reader sync.WaitGroup
				reader.Go(func() {
					_, err := c.RLock(ctx, "held", rowlock.OnWait(func(rowlock.Waiting) { shown.Add(1) }))
					WantIs(t, "a reader of the held key", err, rowlock.ErrHeld, context.DeadlineExceeded)
				})
				time.Sleep(time.Second)
				if n := c.Stats(); n.Waiting != 1 || shown.Load() == 0 || n.Contended > 20 {
					t.Errorf("%d readers wait after %d attempts; one was told so %d times",
						n.Waiting, n.Contended, shown.Load())
				}
				began := time.Now()
				if l, err := c.RLock(ctx, "free"); err != nil || time.Since(began) > 5*roundTrip {
					t.Errorf("a reader of a free key took %s: %v", time.Since(began), err)
				} else {
					drop(t, l)
				}
				reader.Wait()
			})
		})
	}
}
