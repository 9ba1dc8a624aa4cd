package clienttest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
)

// A hook may use the client and its locks. If the client called one while it held a mutex, this
// test would never end.
func TestHooksMayCallTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewScript()
		began := time.Now()
		s.OnRenew = func(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Renewed, error) {
			answers, err := s.Store.Renew(ctx, reqs)
			switch after := time.Since(began); {
			case after > 30*time.Second:
				for i := range answers {
					answers[i].Outcome = lease.Lost
				}
			case after > 20*time.Second:
				for i := range answers {
					answers[i].Clock += time.Hour
				}
			case after > 10*time.Second:
				return nil, ErrDown
			}
			return answers, err
		}
		var c *rowlock.Client
		calls := make(chan string, 10_000)
		inside := make(chan struct{}, 1) // hooks call hooks: once is enough
		call := func(hook string) {
			calls <- hook
			select {
			case inside <- struct{}{}:
				defer func() { <-inside }()
			default:
				return
			}
			l, err := c.TryLock(context.Background(), "of "+hook, rowlock.TTL(time.Hour))
			if err != nil {
				t.Errorf("in %s: %v", hook, err)
				return
			}
			l.Deadline()
			_, _ = c.TryLock(context.Background(), "of "+hook)
			if err := l.Unlock(context.Background()); err != nil && !errors.Is(err, rowlock.ErrLost) {
				t.Errorf("in %s: %v", hook, err)
			}
		}
		cfg := &rowlock.Config{Hooks: rowlock.Hooks{
			Acquired:    func(context.Context, string, lease.Token, time.Duration) { call("Acquired") },
			Contended:   func(context.Context, string, *rowlock.HeldError) { call("Contended") },
			Released:    func(context.Context, string, lease.Token, time.Duration) { call("Released") },
			Lost:        func(context.Context, string, lease.Token, error) { call("Lost") },
			Renewed:     func(context.Context, int, time.Duration) { call("Renewed") },
			RenewFailed: func(context.Context, error, int) { call("RenewFailed") },
			Skewed:      func(context.Context, time.Duration) { call("Skewed") },
		}}
		cfg.Reaper.Off = true
		c = Client(t, s, cfg)
		Take(t, c, "renewed", rowlock.TTL(3*time.Second)) // lost at its deadline while renewals fail
		Take(t, c, "k", rowlock.TTL(24*time.Second))
		_, _ = c.TryLock(t.Context(), "k")
		if err := Take(t, c, "other").Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		Take(t, c, "long", rowlock.TTL(100*time.Second))
		time.Sleep(time.Hour)
		synctest.Wait()
		seen := make(map[string]int)
		for len(calls) > 0 {
			seen[<-calls]++
		}
		for _, hook := range []string{
			"Acquired", "Contended", "Released", "Lost", "Renewed", "RenewFailed", "Skewed",
		} {
			if seen[hook] == 0 {
				t.Errorf("%s was not called: %v", hook, seen)
			}
		}
	})
}
