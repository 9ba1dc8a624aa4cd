package transition_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/memstore"
	"github.com/rowlockdb/rowlock/transition"
)

func TestWhatIsNilIsRefused(t *testing.T) {
	var none context.Context
	var client *redis.Client
	var store *memstore.Store
	name, id := func(key string) string { return key }, func(string) int64 { return 1 }
	notices := memstore.New()
	locks, err := rowlock.New(memstore.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close()
	begin := func(ctx context.Context, old transition.OldLock, notices lease.Store) error {
		_, err := transition.Start(ctx, transition.Config{Stage: transition.Both, Old: old, Locks: locks, Notices: notices})
		return err
	}
	ctx, old := t.Context(), new(counted)
	for _, c := range []struct {
		err  error
		says string
	}{
		{begin(none, old, notices), "ctx is nil"},
		{begin(ctx, (*counted)(nil), notices), "without Config.Old"},
		{begin(ctx, old, store), "Config.Notices"},
		{begin(ctx, transition.Advisory(nil, id), notices), "transition.Advisory"},
		{begin(ctx, transition.Advisory(new(sql.DB), nil), notices), "transition.Advisory"},
		{begin(ctx, transition.GetLock(nil, name), notices), "transition.GetLock"},
		{begin(ctx, transition.GetLock(new(sql.DB), nil), notices), "transition.GetLock"},
		{begin(ctx, transition.Redislock(client, time.Minute, name), notices), "transition.Redislock"},
		{begin(ctx, transition.Redislock(redis.NewClient(&redis.Options{}), time.Minute, nil), notices), "transition.Redislock"},
		{begin(ctx, transition.Client(nil), notices), "transition.Client"},
		{transition.Forget(none, notices, ""), "ctx is nil"},
		{transition.Forget(ctx, store, ""), "the store is nil"},
	} {
		if !errors.Is(c.err, lease.ErrConfig) || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("%v, want ErrConfig and that it says %q", c.err, c.says)
		}
	}
}
