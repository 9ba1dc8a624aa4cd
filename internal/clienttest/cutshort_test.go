package clienttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// slowly answers each request for a shared key 100 ms after it was carried out.
func slowly(s *Script) {
	const late = 100 * time.Millisecond
	s.OnShare = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		defer time.Sleep(late)
		return s.Store.Share(ctx, reqs)
	}
	s.OnAcquire = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		defer time.Sleep(late)
		return s.Store.Acquire(ctx, reqs)
	}
	s.OnAcquireAll = func(ctx context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
		defer time.Sleep(late)
		return s.Store.AcquireAll(ctx, reqs)
	}
	s.OnDowngrade = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
		defer time.Sleep(late)
		return s.Store.Downgrade(ctx, reqs)
	}
	s.OnHandOver = func(ctx context.Context, items []lease.HandOver) ([]lease.Acquired, error) {
		defer time.Sleep(late)
		return s.Store.HandOver(ctx, items)
	}
}

// sharedCalls are the calls that share keys, for one and for several.
var sharedCalls = map[string]func(context.Context, *rowlock.Client) (unlocker, error){
	"RLock": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
		return one(c.RLock(ctx, "a"))
	},
	"TryRLock": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
		return one(c.TryRLock(ctx, "a"))
	},
	"RLockAll": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
		return all(c.RLockAll(ctx, []string{"a", "b", "c"}))
	},
	"TryRLockAll": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
		return all(c.TryRLockAll(ctx, []string{"a", "b", "c"}))
	},
	"DoShared": func(ctx context.Context, c *rowlock.Client) (unlocker, error) {
		return nil, c.DoShared(ctx, "a", func(context.Context, *rowlock.Lock) error { return nil })
	},
}

func one(l *rowlock.Lock, err error) (unlocker, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

func all(l *rowlock.Locks, err error) (unlocker, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// However the end of ctx meets the answers, the caller has the locks, or none is left: not for a
// TTL, and not after Close.
func TestACallThatSharesAndIsCutShortLeavesNothing(t *testing.T) {
	for name, call := range sharedCalls {
		for _, fair := range []bool{false, true} {
			for _, shared := range []bool{false, true} { // by another reader, whom the call joins
				t.Run(fmt.Sprintf("%s, fair %t, shared %t", name, fair, shared), func(t *testing.T) {
					for after := 10 * time.Millisecond; after < time.Second; after += 20 * time.Millisecond {
						cutShort(t, call, fair, shared, after)
					}
				})
			}
		}
	}
}

func cutShort(
	t *testing.T, call func(context.Context, *rowlock.Client) (unlocker, error),
	fair, shared bool, after time.Duration,
) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		cfg := &rowlock.Config{TTL: time.Hour, Fair: fair}
		cfg.Reaper.Off = true
		c := Client(t, s, cfg)
		if shared {
			first := share(t, c, "a")
			defer drop(t, first)
		}
		slowly(s)
		ctx, cancel := context.WithTimeout(t.Context(), after)
		defer cancel()
		l, err := call(ctx, c)
		switch {
		case err == nil && l != nil:
			if l.Context().Err() != nil {
				t.Errorf("after %v: granted, and over", after)
			}
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		case err != nil && !errors.Is(err, context.DeadlineExceeded):
			t.Errorf("after %v: %v", after, err)
		}
		time.Sleep(10 * time.Second) // the orphan cleaner's window and a little
		members := 0
		if shared {
			members = 1
		}
		for _, key := range []string{"a", "b", "c"} {
			if r := Record(t, s, key); r.Held && (key != "a" || r.Members != members) {
				t.Errorf("after %v: %v: %q is held for %v more, by %d members", after, err, key,
					r.Remaining, r.Members)
			}
		}
	})
}

// The store has said yes, and ctx ended before the call could return.
func TestASharedGrantThatRacesWithCancellationWins(t *testing.T) {
	for name, arrange := range map[string]func(t *testing.T, c *rowlock.Client) (done func()){
		"the call joins readers": func(t *testing.T, c *rowlock.Client) func() {
			first := share(t, c, "k")
			return func() { drop(t, first) }
		},
		"the call makes the key shared": func(*testing.T, *rowlock.Client) func() { return func() {} },
	} {
		for _, fair := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, fair %t", name, fair), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := NewScript()
					c := Client(t, s, &rowlock.Config{Fair: fair})
					done := arrange(t, c)
					defer done()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					s.OnShare = func(_ context.Context, reqs []lease.AcquireRequest) ([]lease.Acquired, error) {
						answers, err := s.Store.Share(t.Context(), reqs)
						if answers[0].Granted {
							cancel()
						}
						return answers, err
					}
					s.OnDowngrade = func(now context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
						cancel()
						time.Sleep(time.Second)
						return s.Store.Downgrade(now, reqs)
					}
					l, err := c.RLock(ctx, "k")
					if err != nil {
						t.Fatal(err)
					}
					WantAlive(t, l)
					drop(t, l)
				})
			})
		}
	}
}

// A reader that has waited is handed the writer's lease, and leaves at this very moment.
func TestAReaderThatLeavesAtItsHandOverLeavesNothing(t *testing.T) {
	for _, fair := range []bool{false, true} {
		for after := time.Duration(0); after < 400*time.Millisecond; after += 10 * time.Millisecond {
			synctest.Test(t, func(t *testing.T) {
				s := NewScript()
				c := Client(t, s, &rowlock.Config{TTL: time.Hour, Fair: fair})
				w := Take(t, c, "k")
				slowly(s)
				ctx, cancel := context.WithCancel(t.Context())
				got := make(chan error, 1)
				go func() {
					l, err := c.RLock(ctx, "k")
					if err == nil {
						err = l.Unlock(t.Context())
					}
					got <- err
				}()
				time.Sleep(time.Second)
				time.AfterFunc(after, cancel)
				Unlock(t, w)
				if err := <-got; err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("fair %t, after %v: %v", fair, after, err)
				}
				time.Sleep(10 * time.Second)
				if r := Record(t, s, "k"); r.Held {
					t.Errorf("fair %t, after %v: held for %v by %d members", fair, after, r.Remaining, r.Members)
				}
				cancel()
			})
		}
	}
}
