package main

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
	"github.com/rowlockdb/rowlock/paxosbridge/etcd"
)

// side is one of two clients that share nothing but the database and the cluster, as two processes
// would: each has a pool, a bridge and a client of etcd's of its own.
type side struct {
	*rowlock.Client
	etcd  *clientv3.Client
	close func() error
}

// open puts a bridge between the table and the client: that is all there is to it.
func open(ctx context.Context, db string, names dialect.Option, m *members, sent *atomic.Int64,
	cfg *paxosbridge.Config,
) (s *side, err error) {
	var made closers
	defer func() {
		if err != nil {
			err = errors.Join(err, made.close())
		}
	}()
	pool, err := source.OpenCounted(ctx, db, sent, names)
	if err != nil {
		return nil, err
	}
	made.add(pool.Close)
	locks := &rowlock.Config{TTL: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	table, err := rowlock.OpenTable(pool, pool.Dialect, locks)
	if err != nil {
		return nil, err
	}
	made.add(table.Close)
	s = new(side)
	if s.etcd, err = m.connect(); err != nil {
		return nil, err
	}
	made.add(s.etcd.Close)
	cluster, err := etcd.New(ctx, s.etcd)
	if err != nil {
		return nil, err
	}
	made.add(cluster.Close)
	bridge, err := paxosbridge.New(ctx, table, cluster, cfg)
	if err != nil {
		return nil, err
	}
	made.add(bridge.Close)
	if s.Client, err = rowlock.New(bridge, locks); err != nil {
		return nil, err
	}
	made.add(s.Client.Close)
	s.close = made.close
	return s, nil
}

// closers are called in the opposite order, once.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

func (c *closers) close() (err error) {
	for i := len(*c) - 1; i >= 0; i-- {
		err = errors.Join(err, (*c)[i]())
	}
	*c = nil
	return err
}

// pace is how long everything takes. A real bridge takes its defaults: keys that are hot for a
// moment are not worth a move.
type pace struct {
	before  time.Duration // that a key must be hot or cool for
	stay    time.Duration // that it stays where it has come to
	between time.Duration // two steps of the show
	every   time.Duration // it is decided what moves
}

func (cfg settings) pace() pace {
	if cfg.short {
		return pace{before: time.Second, stay: 1500 * time.Millisecond, between: 2 * time.Second, every: 200 * time.Millisecond}
	}
	return pace{before: 3 * time.Second, stay: 4 * time.Second, between: 5 * time.Second, every: 500 * time.Millisecond}
}

const (
	hotAt  = 25 // bids, refusals and hand-overs a second, on each side
	coolAt = 20 // which is far too near for a real bridge: a show cannot wait for keys to cool
)

func (p pace) bridge(s *show) *paxosbridge.Config {
	return &paxosbridge.Config{
		Heat:  paxosbridge.Heat{Hot: hotAt, Cool: coolAt, Dwell: p.before, MinStay: p.stay},
		Every: p.every, Refresh: 2 * time.Second,
		Logger: slog.New(slog.DiscardHandler), // what it says comes by the hooks, too
		Hooks: paxosbridge.Hooks{
			Moved: s.moved,
			Stayed: func(key string, err error) {
				if !errors.Is(err, lease.ErrMoved) { // the other side was quicker
					s.event("%s stays: %v", key, err)
				}
			},
			Recalled: func(key string, epoch int64) {
				s.event("the database had forgotten that %s moved in epoch %d", key, epoch)
			},
		},
	}
}
