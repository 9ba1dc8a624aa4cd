package wlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/wlock"
)

var noContext context.Context

func TestWhatCannotBeAskedIsRefused(t *testing.T) {
	c, err := wlock.New(t.Context(), patient(config(newDouble(t))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	l := wlock.Lock{Key: "k", Owner: lease.NewOwner()}
	calls := map[string]func(ctx context.Context, l wlock.Lock) error{
		"TryLock": func(ctx context.Context, l wlock.Lock) error {
			_, err := c.TryLock(ctx, wlock.Ask{Lock: l, TTL: time.Second})
			return err
		},
		"WaitLock": func(ctx context.Context, l wlock.Lock) error {
			_, err := c.WaitLock(ctx, wlock.Ask{Lock: l, TTL: time.Second})
			return err
		},
		"ReleaseLock": func(ctx context.Context, l wlock.Lock) error {
			_, _, err := c.ReleaseLock(ctx, l)
			return err
		},
		"RenewLock": func(ctx context.Context, l wlock.Lock) error {
			_, _, err := c.RenewLock(ctx, l, time.Second)
			return err
		},
		"See": func(ctx context.Context, l wlock.Lock) error {
			_, _, err := c.See(ctx, l)
			return err
		},
	}
	for name, call := range calls {
		wantConfig(t, name, call(noContext, l), "ctx is nil")
		for _, kind := range []wlock.Kind{-1, wlock.Read + 1} {
			other := l
			other.Kind = kind
			wantConfig(t, name, call(t.Context(), other), "use Mutex, Write or Read")
		}
	}
	wantConfig(t, "Watch", c.Watch(noContext, "k"), "ctx is nil")
	_, err = wlock.New(noContext, patient(config(newDouble(t))))
	wantConfig(t, "New", err, "ctx is nil")
	_, err = wlock.New(t.Context(), wlock.Config{Registry: []string{"r:1"}, Cluster: cluster, Skew: -time.Second})
	wantConfig(t, "New", err, "-1s")
}

func wantConfig(t *testing.T, call string, err error, says string) {
	t.Helper()
	if !errors.Is(err, lease.ErrConfig) || !strings.Contains(err.Error(), says) {
		t.Errorf("%s: %v, want ErrConfig and that it says %q", call, err, says)
	}
}
