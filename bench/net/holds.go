package main

import (
	"context"
	"errors"
	"slices"

	"github.com/bsm/redislock"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/section"
)

const (
	holdOwn     = "the server's own lock"
	holdRedis   = "redislock"
	holdRowlock = ours + "Unlock, Lock"
)

// holds are the ways to have a key, in the order of the report.
var holds = []string{holdOwn, holdRedis, holdRowlock}

// hold has a key or has it not. One is called at a time. Each has connections of its own: what a
// rowlock that waits no more still says to its server is no round trip of the others.
type hold struct {
	lock, unlock func(context.Context) error
	trips        func() int64
}

// holdings are the ways of one process.
type holdings struct {
	all     map[string]hold
	closers []func() error
}

func (h *holder) open(ctx context.Context) (all *holdings, err error) {
	all = &holdings{all: make(map[string]hold)}
	if all.all[holdOwn], err = h.openOwn(ctx, all); err != nil {
		return all, err
	}
	if h.Redis != "" {
		r, err := newInRedis(h.Redis)
		if err != nil {
			return all, err
		}
		all.all[holdRedis], all.closers = r.hold(), append(all.closers, r.close)
	}
	all.all[holdRowlock], err = h.openRowlock(all)
	return all, err
}

func (all *holdings) close() (err error) {
	for _, f := range slices.Backward(all.closers) {
		err = errors.Join(err, f())
	}
	return err
}

// join connects to the database.
func (h *holder) join(all *holdings) (*rig.Database, error) {
	d, err := rig.Join(h.Database, h.Source, h.Prefix)
	if err == nil {
		all.closers = append(all.closers, d.Close)
	}
	return d, err
}

func (h *holder) openOwn(ctx context.Context, all *holdings) (hold, error) {
	d, err := h.join(all)
	if err != nil {
		return hold{}, err
	}
	o, err := newOwn(ctx, d)
	if err != nil {
		return hold{}, err
	}
	all.closers = append(all.closers, o.close)
	say := func(call string) func(context.Context) error {
		return func(ctx context.Context) error { return o.say(ctx, call, 1) }
	}
	return hold{say(o.lock), say(o.unlock), d.Wire.Trips}, nil
}

func (h *holder) openRowlock(all *holdings) (hold, error) {
	d, err := h.join(all)
	if err != nil {
		return hold{}, err
	}
	c, err := rowlock.Open(d.Pool, d.Dialect, section.Config())
	if err != nil {
		return hold{}, err
	}
	all.closers = append(all.closers, c.Close)
	var l *rowlock.Lock
	return hold{
		func(ctx context.Context) (err error) { l, err = c.Lock(ctx, "bench/net/pair"); return err },
		func(ctx context.Context) error { return l.Unlock(ctx) }, d.Wire.Trips,
	}, nil
}

func (r *inRedis) hold() hold {
	var l *redislock.Lock
	return hold{
		func(ctx context.Context) (err error) { l, err = r.obtain(ctx); return err },
		func(ctx context.Context) error { return l.Release(ctx) }, r.trips,
	}
}
