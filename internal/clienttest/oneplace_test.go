package clienttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// Unlock, UnlockNow, Downgrade, another handle, MaxHold, a loss, a forced release and Close meet in
// a random order. Whatever comes first, each lease is released once by its token, or left to the
// orphan cleaner, which asks for no token, or left to MinHold: never to two of them, and never to
// none. But UnlockNow releases what MinHold had, of which the cleaner may yet wait for a renewal.
func TestEachLeaseEndsInOnePlace(t *testing.T) {
	const ttl = 3 * time.Second
	seeds := uint64(200)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := rand.New(rand.NewPCG(seed, 1))
				s := NewScript()
				s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
					if reqs[0].TTL != ttl { // MinHold's, and what tells why a release fails
						return s.Store.Renew(ctx, reqs)
					}
					for i := range reqs { // as mute: else a lease that no place has would expire
						reqs[i].TTL = time.Hour
					}
					_, _ = s.Store.Renew(ctx, reqs)
					ctx, cancel := context.WithTimeout(ctx, 10*ttl) // some day every store gives up
					defer cancel()
					<-ctx.Done()
					return nil, ctx.Err()
				}
				var random sync.Mutex
				within := func(d time.Duration) time.Duration {
					random.Lock()
					defer random.Unlock()
					return time.Duration(r.Int64N(int64(d)))
				}
				s.OnDowngrade = func(_ context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
					time.Sleep(within(ttl / 2))
					defer time.Sleep(within(ttl / 2))
					switch within(4) {
					case 0:
						return []lease.Renewed{{Err: lease.ErrBusy}}, nil
					case 1:
						return nil, fmt.Errorf("%w: connection reset", lease.ErrUnknown)
					case 2:
						_, _ = s.Store.Downgrade(context.Background(), reqs)
						return nil, fmt.Errorf("%w: connection reset", lease.ErrUnknown)
					}
					return s.Store.Downgrade(context.Background(), reqs)
				}
				c := long(t, s)
				kept := map[string]bool{}
				var locks []*rowlock.Lock
				var all sync.WaitGroup
				for i := range 12 {
					key := fmt.Sprint(i)
					opts := []rowlock.Option{rowlock.TTL(time.Hour)}
					if within(2) == 0 { // it is lost in time, because no renewal is answered
						opts = []rowlock.Option{rowlock.TTL(ttl)}
					}
					if within(2) == 0 {
						opts = append(opts, rowlock.MaxHold(time.Second+within(2*time.Second)))
					}
					if within(3) == 0 {
						opts, kept[key] = append(opts, rowlock.MinHold(within(time.Second)+1)), true
					}
					l := Take(t, c, key, opts...)
					locks = append(locks, l)
					for _, act := range []func(){
						func() { _ = l.Unlock(context.Background()) },
						func() { _ = l.UnlockNow(context.Background()) },
						func() { _ = l.Downgrade(context.Background()) },
						func() { _ = l.Downgrade(context.Background()) },
						func() {
							if n, err := c.TryLock(l.Context(), key, rowlock.Reentrant()); err == nil {
								time.Sleep(within(ttl))
								_ = n.Unlock(context.Background())
							}
						},
						func() {
							if within(4) == 0 {
								_, _ = c.ForceRelease(context.Background(), key, rowlock.Force{Reason: "test", Token: l.Token()})
							}
						},
					} {
						if within(3) > 0 {
							at := within(ttl)
							all.Go(func() { time.Sleep(at); act() })
						}
					}
				}
				closes := within(2) == 0 // then the last orphans are cleaned at once, and stay counted
				if closes {
					at := within(ttl)
					all.Go(func() { time.Sleep(at); _ = c.Close() })
				}
				all.Wait()
				for _, l := range locks {
					_ = l.Unlock(context.Background())
				}
				time.Sleep(time.Minute) // past every window of the cleaner
				for _, l := range locks {
					wantOnePlace(t, s, l.Key(), kept[l.Key()])
				}
				if n := c.Stats(); n.Held != 0 || n.Acquired != n.Released+n.Lost || n.OrphansOpen != 0 && !closes {
					t.Errorf("%+v", n)
				}
			})
		})
	}
}

// wantOnePlace finds where the lease of key went. kept says that MinHold may have it.
func wantOnePlace(t *testing.T, s *Script, key string, kept bool) {
	t.Helper()
	released, cleaned := 0, 0
	s.mu.Lock()
	for _, r := range s.Releases {
		switch {
		case r.Key != key:
		case r.Token != 0:
			released++
		default:
			cleaned++
		}
	}
	s.mu.Unlock()
	switch {
	case released > 1, released > 0 && cleaned > 0 && !kept, released+cleaned == 0 && !kept:
		t.Errorf("%s: released %d times, %d times by the cleaner, MinHold %t", key, released, cleaned, kept)
	}
	if r := Record(t, s, key); r.Held {
		t.Errorf("%s: held for %v more by %d members", key, r.Remaining, r.Members)
	}
}
