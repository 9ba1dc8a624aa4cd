package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

const (
	nameRedislock = "redislock"
	nameRedsync   = "redsync"
	redisDefault  = "redis with default settings"
	ttl           = 30 * time.Second
)

// redisSetup is one Redis server.
type redisSetup struct {
	system, variable string
	series           [2]byte // of redislock's keys and of redsync's; 0: redsync is left out
	durable          bool
}

func (o *others) addRedis(ctx context.Context, s settings, setup redisSetup, source string) error {
	options, err := redis.ParseURL(source)
	if err != nil {
		return err
	}
	options.PoolSize = s.level(mostHands)
	meter := &rig.Meter{PID: rig.ServerPID(setup.server()), Wire: new(rig.Wire)}
	options.Dialer = meter.Wire.Dial
	client := redis.NewClient(options)
	o.closers = append(o.closers, client)
	facts, err := redisFacts(ctx, client)
	if err != nil {
		return err
	}
	o.facts = append(o.facts, setup.system+": "+facts)
	pool := fmt.Sprintf("at most %d", options.PoolSize)
	levels := []int{1, 16, 64, 256}
	if setup.durable {
		levels = append(levels, 1024)
	}
	lock := redislockPair(redislock.New(client))
	one := &contender{
		name: nameRedislock, system: setup.system, pool: pool, key: recurring(setup.series[0]), levels: levels, pair: lock,
		wait: setup.durable, meter: meter,
	}
	if setup.durable { // its waiters take as long on the other, whose pauses are the same
		one.contend = lock
	}
	o.contenders = append(o.contenders, one)
	if setup.durable {
		o.redis = source
		if err := o.addPipelined(source); err != nil {
			return fmt.Errorf("rueidis: %w", err)
		}
	}
	if setup.series[1] != 0 {
		sync := redsyncPair(redsync.New(goredis.NewPool(client)))
		o.contenders = append(o.contenders, &contender{
			name: nameRedsync, system: setup.system, pool: pool, key: recurring(setup.series[1]), levels: []int{1, 64, 256},
			pair: sync, contend: sync, meter: meter,
		})
	}
	return nil
}

// server is its name for scripts/with-servers.
func (r redisSetup) server() string {
	return strings.ToLower(strings.TrimPrefix(r.variable, "ROWLOCK_TEST_"))
}

// redisFacts says which server it is and what it writes to the disk.
func redisFacts(ctx context.Context, c *redis.Client) (string, error) {
	info, err := c.Info(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	_, version, _ := strings.Cut(info, "redis_version:")
	version, _, _ = strings.Cut(version, "\r")
	facts := []string{"Redis " + version}
	for _, name := range []string{"appendonly", "appendfsync", "save"} {
		value, err := c.ConfigGet(ctx, name).Result()
		if err != nil {
			return "", err
		}
		facts = append(facts, fmt.Sprintf("%s %q", name, value[name]))
	}
	return strings.Join(facts, ", "), nil
}

// redislockPair retries as often as redislock's documentation recommends at most: after 16 ms, then in growing steps.
func redislockPair(c *redislock.Client) pair {
	return func(ctx context.Context, _ int, key string, inside func() error) error {
		l, err := c.Obtain(ctx, key, ttl, &redislock.Options{
			RetryStrategy: redislock.ExponentialBackoff(16*time.Millisecond, 128*time.Millisecond),
		})
		if err != nil {
			return err
		}
		return errors.Join(call(inside), l.Release(ctx))
	}
}

// redsyncPair retries as redsync does by itself, after 50 to 250 ms, but not only 32 times.
func redsyncPair(r *redsync.Redsync) pair {
	return func(ctx context.Context, _ int, key string, inside func() error) error {
		m := r.NewMutex(key, redsync.WithExpiry(ttl), redsync.WithTries(10_000))
		if err := m.LockContext(ctx); err != nil {
			return err
		}
		err := call(inside)
		ok, failed := m.UnlockContext(ctx)
		if failed == nil && !ok {
			failed = errors.New("redsync: not unlocked")
		}
		return errors.Join(err, failed)
	}
}
