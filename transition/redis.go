package transition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// pollEvery is between two tries to take a key of Redis.
const pollEvery = 25 * time.Millisecond

// mark is in the value of a key that was locked in stage Both.
const mark = "/rowlock transition"

type redisLock struct {
	client redis.UniversalClient
	locks  *redislock.Client
	ttl    time.Duration
	name   func(key string) string
}

// Redislock is bsm/redislock's lock with a TTL, which is renewed, on what name returns. If Redis loses
// the key, Lock.OldLost says so, and ours is kept.
func Redislock(client redis.UniversalClient, ttl time.Duration, name func(key string) string) OldLock {
	if ttl < time.Second { // checkEvery is too long for it, and the key would be lost in between
		return unfit{fmt.Errorf("%w: transition: Redislock with a TTL of %s: it must be at least 1s", lease.ErrConfig, ttl)}
	}
	return unless(isnil.Value(client) || name == nil, "Redislock", &redisLock{client, redislock.New(client), ttl, name})
}

func (r *redisLock) Lock(ctx context.Context, key string, wait bool) (OldHeld, error) {
	opts := &redislock.Options{Metadata: mark}
	l, err := r.locks.Obtain(ctx, r.name(key), r.ttl, opts)
	for wait && errors.Is(err, redislock.ErrNotObtained) && retry.Sleep(ctx, pollEvery) {
		l, err = r.locks.Obtain(ctx, r.name(key), r.ttl, opts)
	}
	if errors.Is(err, redislock.ErrNotObtained) {
		err = oneline.Join(fmt.Errorf("%w: the old lock on %q", lease.ErrHeld, key), ctx.Err())
	}
	if err != nil {
		return nil, err
	}
	return &redisHeld{l, r.ttl}, nil
}

func (r *redisLock) HeldAlone(ctx context.Context, key string) (bool, error) {
	value, err := r.client.Get(ctx, r.name(key)).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && !strings.HasSuffix(value, mark), err
}

type redisHeld struct {
	lock *redislock.Lock
	ttl  time.Duration
}

func (h *redisHeld) Check(ctx context.Context) error {
	err := h.lock.Refresh(ctx, h.ttl, nil)
	if err != nil && !errors.Is(err, redislock.ErrNotObtained) {
		return fmt.Errorf("%w: %w", lease.ErrUnknown, err) // the key may be there until its TTL ends
	}
	return err
}

func (h *redisHeld) Unlock(ctx context.Context) error { return h.lock.Release(ctx) }

// clientLock is a lock of a client on another store.
type clientLock struct{ locks *rowlock.Client }

// Client is the lock of a rowlock.Client on another store: on ShedLock's table, by package shedlock.
func Client(locks *rowlock.Client) OldLock { return unless(locks == nil, "Client", clientLock{locks}) }

func (c clientLock) Lock(ctx context.Context, key string, wait bool) (OldHeld, error) {
	get := c.locks.TryLock
	if wait {
		get = c.locks.Lock
	}
	l, err := get(ctx, key, rowlock.Note(mark))
	if err != nil {
		return nil, err
	}
	return clientHeld{l}, nil
}

func (c clientLock) HeldAlone(ctx context.Context, key string) (bool, error) {
	list, err := c.locks.Inspect(ctx, lease.Filter{Keys: []string{key}, Held: true})
	if err != nil || len(list) == 0 {
		return false, err
	}
	_, note := lease.SplitNote(list[0].Note)
	return note != mark, nil
}

type clientHeld struct{ lock *rowlock.Lock }

func (h clientHeld) Check(context.Context) error { return context.Cause(h.lock.Context()) }

func (h clientHeld) Unlock(ctx context.Context) error { return h.lock.Unlock(ctx) }
