package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/faultdb"
)

// crowdResult is what a server had to do for a crowd of waiters, and for the holder of what they wait for.
type crowdResult struct {
	waiters, keys int
	by            string
	rate          float64 // statements a second
	sent          float64 // of them, those the two clients sent through database/sql
	looks         float64 // of those, looks at SQLite's counter of commits
}

// crowd is one process full of waiters, and the other client that holds what they wait for.
type crowd struct {
	counter         *counter
	pool            *sql.DB
	holder, waiters *rowlock.Client
	lost            atomic.Int64    // bids that found the key held
	held            []*rowlock.Lock // what the holder has: a lock whose handle is garbage is released
}

const (
	longTTL = time.Hour // no renewals
	helpers = 16
)

func watchCrowd(ctx context.Context, d *rig.Database, s settings, keys int, p *rig.Progress) (r crowdResult, err error) {
	p.Say(d.Name, fmt.Sprintf("%d waiters, %d keys", s.waiters, keys))
	defer p.Step()
	c := &crowd{}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.open(ctx, d); err != nil {
		return r, err
	}
	if err := c.hold(ctx, keys); err != nil {
		return r, err
	}
	r = crowdResult{waiters: s.waiters, keys: keys, by: c.counter.by}
	end := c.wait(ctx, s.waiters, keys)
	err = c.settle(ctx, s, int64(keys))
	if err == nil {
		err = c.watch(ctx, s, &r)
	}
	return r, errors.Join(err, end())
}

func (c *crowd) open(ctx context.Context, d *rig.Database) (err error) {
	if c.counter, err = newCounter(ctx, d); err != nil {
		return err
	}
	if c.pool, err = faultdb.Open(d.Driver, d.Source, c.counter.sent); err != nil {
		return err
	}
	cfg := rowlock.Config{TTL: longTTL, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}}
	if c.holder, err = rowlock.Open(c.pool, d.Dialect, &cfg); err != nil {
		return err
	}
	cfg.Hooks.Contended = func(context.Context, string, *rowlock.HeldError) { c.lost.Add(1) }
	c.waiters, err = rowlock.Open(c.pool, d.Dialect, &cfg)
	return err
}

func (c *crowd) close() (err error) {
	for _, client := range []*rowlock.Client{c.waiters, c.holder} {
		if client != nil {
			err = errors.Join(err, client.Close())
		}
	}
	if c.pool != nil {
		err = errors.Join(err, c.pool.Close())
	}
	if c.counter != nil {
		err = errors.Join(err, c.counter.close())
	}
	return err
}

func heldKey(n int) string { return fmt.Sprintf("bench/held/%06d", n) }

func (c *crowd) hold(ctx context.Context, keys int) error {
	c.held = make([]*rowlock.Lock, keys)
	var g errgroup.Group
	g.SetLimit(helpers)
	for n := range keys {
		g.Go(func() (err error) {
			c.held[n], err = c.holder.Lock(ctx, heldKey(n))
			return err
		})
	}
	return g.Wait()
}

// wait starts the waiters. end sends them home and returns what happened to them.
func (c *crowd) wait(ctx context.Context, waiters, keys int) (end func() error) {
	ctx, cancel := context.WithCancel(ctx)
	failed := make([]error, waiters)
	var wg sync.WaitGroup
	for n := range waiters {
		wg.Go(func() {
			if _, err := c.waiters.Lock(ctx, heldKey(n%keys)); !errors.Is(err, context.Canceled) {
				failed[n] = fmt.Errorf("a waiter did not wait: %w", errors.Join(err, errGot))
			}
		})
	}
	return func() error {
		cancel()
		wg.Wait()
		return errors.Join(failed...)
	}
}

var errGot = errors.New("the key was held")

// settle lets every key be bid for, and some time pass: what a poller looks at is looked at the less often the longer it is held.
func (c *crowd) settle(ctx context.Context, s settings, bids int64) error {
	for c.lost.Load() < bids {
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return pause(ctx, s.settle)
}

func (c *crowd) watch(ctx context.Context, s settings, r *crowdResult) error {
	before, err := c.counter.count(ctx)
	if err != nil {
		return err
	}
	sent, looks, began := c.counter.sent.statements.Load(), c.counter.sent.looks.Load(), time.Now()
	if err := pause(ctx, s.watch); err != nil {
		return err
	}
	sent, looks = c.counter.sent.statements.Load()-sent, c.counter.sent.looks.Load()-looks
	after, err := c.counter.count(ctx)
	took := time.Since(began).Seconds()
	r.rate, r.sent, r.looks = c.counter.between(before, after)/took, float64(sent)/took, float64(looks)/took
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
