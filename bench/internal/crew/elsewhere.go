package crew

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// inRedis locks with redislock, which polls by the pauses that its documentation recommends.
type inRedis struct {
	client *redis.Client
	locks  *redislock.Client
}

func openRedis(source string) (locker, error) {
	options, err := redis.ParseURL(source)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(options)
	return inRedis{client, redislock.New(client)}, nil
}

func (r inRedis) lock(ctx context.Context, _ int, key string) (func() error, error) {
	l, err := r.locks.Obtain(ctx, key, 30*time.Second, &redislock.Options{
		RetryStrategy: redislock.ExponentialBackoff(16*time.Millisecond, 128*time.Millisecond),
	})
	if err != nil {
		return nil, err
	}
	return func() error { return l.Release(context.WithoutCancel(ctx)) }, nil
}

func (r inRedis) close() error { return r.client.Close() }

// inEtcd locks with a session, with one goroutine: a session that has a key gets it once more.
type inEtcd struct {
	client  *clientv3.Client
	session *concurrency.Session
}

func openEtcd(endpoint string) (locker, error) {
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		return nil, err
	}
	s, err := concurrency.NewSession(c)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return inEtcd{c, s}, nil
}

func (e inEtcd) lock(ctx context.Context, _ int, key string) (func() error, error) {
	m := concurrency.NewMutex(e.session, key)
	if err := m.Lock(ctx); err != nil {
		return nil, err
	}
	return func() error { return m.Unlock(context.WithoutCancel(ctx)) }, nil
}

func (e inEtcd) close() error { return errors.Join(e.session.Close(), e.client.Close()) }
