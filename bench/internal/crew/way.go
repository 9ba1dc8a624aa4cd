// Package crew has processes contend: each locks keys, holds them and unlocks them, again and
// again, by the way to lock that it is told.
package crew

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/setting"
)

// The ways to lock.
const (
	Rowlock   = "rowlock"
	Raw       = "raw"      // polling by hand
	OwnLock   = "own lock" // PostgreSQL's pg_advisory_lock
	Redislock = "redislock"
	Etcd      = "etcd"
)

// Way is one way to lock.
type Way struct {
	Name    string
	Kind    string
	Pause   time.Duration // of Raw
	Relaxed bool          // of Rowlock: releases need not be durable
	Series  byte          // of its keys: no way meets rows that another has left
}

// Key is the one key that all want.
func (w Way) Key() string { return w.Shared(0) }

// Shared is one of several keys that all want.
func (w Way) Shared(n int) string { return race.Key(w.Series, 0, n) }

// Own is the nth key of a goroutine that has keys of its own.
func (w Way) Own(process, goroutine, n int) string {
	return race.Key(w.Series, 1+process*1000+goroutine, n%race.Own)
}

// locker is a way within one process. Of the goroutines, which count from 0, each does one thing at
// a time.
type locker interface {
	lock(ctx context.Context, goroutine int, key string) (unlock func() error, err error)
	close() error
}

func (w Way) open(ctx context.Context, d *rig.Database, j Job, goroutines int) (locker, error) {
	switch w.Kind {
	case Rowlock:
		c, err := rowlock.Open(d.Pool, d.Dialect, setting.Config(0, w.Relaxed))
		return ours{c}, err
	case Raw:
		return openRaw(ctx, d, w, goroutines)
	case OwnLock:
		return openOwn(ctx, d)
	case Redislock:
		return openRedis(j.Redis)
	case Etcd:
		return openEtcd(j.Etcd)
	}
	return nil, fmt.Errorf("%q: no such way to lock", w.Kind)
}

type ours struct{ *rowlock.Client }

func (o ours) lock(ctx context.Context, _ int, key string) (func() error, error) {
	l, err := o.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	return func() error { return l.Unlock(ctx) }, nil
}

func (o ours) close() error { return o.Close() }
