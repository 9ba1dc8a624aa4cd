package leaderrowlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	leaderrowlock "github.com/rowlockdb/rowlock/adapters/client-go"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
)

// far is a database that renews slowly, and that a process can be cut off from.
type far struct {
	lease.Store
	takes time.Duration
	cut   atomic.Bool
}

func (f *far) Renew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
	if time.Sleep(f.takes); f.cut.Load() {
		return nil, errors.New("connection refused")
	}
	return f.Store.Renew(ctx, reqs)
}

// leading is a candidate that leads for LeaseDuration of 15 s.
func leading(t *testing.T, store lease.Store, cfg *rowlock.Config) *leaderrowlock.Lock {
	t.Helper()
	c, err := rowlock.New(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	lock, err := leaderrowlock.New(c, key, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Create(t.Context(), record("a", 15)); err != nil {
		t.Fatal(err)
	}
	return lock
}

// An elector counts RenewDeadline from its last Update. If Update succeeded until the lock is lost,
// the elector would go on leading for so long while another does.
func TestAnUpdateLeavesHalfOfLeaseDurationAndIsRefusedToNoHealthyLock(t *testing.T) {
	const step = 100 * time.Millisecond
	for name, c := range map[string]struct {
		cfg   *rowlock.Config
		takes time.Duration
	}{
		"the default":        {nil, 0},
		"a busy database":    {nil, 1500 * time.Millisecond},
		"the largest margin": {&rowlock.Config{TTL: time.Second}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &far{Store: memstore.New(), takes: c.takes}
				lock := leading(t, store, c.cfg)
				update := func() error { return lock.Update(t.Context(), record("a", 15)) }
				for range time.Minute / step {
					time.Sleep(step)
					if err := update(); err != nil {
						t.Fatalf("of a healthy lock: %v", err)
					}
				}
				cutOff := func() (last time.Time) {
					store.cut.Store(true)
					for update() == nil {
						last = time.Now()
						time.Sleep(step)
					}
					return last
				}
				cutOff()
				store.cut.Store(false)
				time.Sleep(4 * time.Second) // until the renewal is tried again
				if err := update(); err != nil {
					t.Errorf("after an outage: %v", err)
				}
				last := cutOff()
				for rows := 1; rows > 0; time.Sleep(step) {
					list, err := store.Inspect(t.Context(), lease.Filter{Held: true})
					if rows = len(list); err != nil {
						t.Fatal(err)
					}
				}
				if left := time.Since(last); left < 15*time.Second/2 {
					t.Errorf("the key is free %s after an Update", left)
				}
				adaptertest.WantIs(t, update(), rowlock.ErrLost)
			})
		})
	}
}

// It is renewed until MaxIdle has passed, and lasts for its TTL then.
func TestALockThatItsElectorHasLeftIsFreeWithinTwiceLeaseDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		leading(t, store, nil).RecordEvent("stopped leading")
		time.Sleep(30 * time.Second)
		if rows, err := store.Inspect(t.Context(), lease.Filter{Held: true}); err != nil || len(rows) > 0 {
			t.Errorf("%+v, %v, want none", rows, err)
		}
	})
}
