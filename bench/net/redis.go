package main

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// inRedis locks with redislock.
type inRedis struct {
	wire   rig.Wire
	client *redis.Client
	locks  *redislock.Client
}

const (
	redisKey = "bench/net"
	redisTTL = 30 * time.Second
)

func newInRedis(source string) (*inRedis, error) {
	options, err := redis.ParseURL(source)
	if err != nil {
		return nil, err
	}
	r := new(inRedis)
	options.Dialer = r.wire.Dial
	r.client = redis.NewClient(options)
	r.locks = redislock.New(r.client)
	return r, nil
}

func (r *inRedis) close() error { return r.client.Close() }

// trips is 0 without a Redis.
func (r *inRedis) trips() int64 {
	if r == nil {
		return 0
	}
	return r.wire.Trips()
}

// obtain retries as often as redislock's documentation recommends at most: after 16 ms, then in
// growing steps.
func (r *inRedis) obtain(ctx context.Context) (*redislock.Lock, error) {
	return r.locks.Obtain(ctx, redisKey, redisTTL, &redislock.Options{
		RetryStrategy: redislock.ExponentialBackoff(16*time.Millisecond, 128*time.Millisecond),
	})
}

func (r *inRedis) lockAndUnlock(ctx context.Context) error {
	return r.within(ctx, func() error { return nil })
}

// around is a section: the data are in the database, and a transaction of their own writes them.
func (r *inRedis) around(db beginner, statement string) func(context.Context) error {
	return func(ctx context.Context) error {
		return r.within(ctx, func() error { return write(ctx, db, statement) })
	}
}

func (r *inRedis) within(ctx context.Context, do func() error) error {
	l, err := r.obtain(ctx)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return l.Release(ctx)
}
