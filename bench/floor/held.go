package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/faultdb"
)

const (
	heldTTL = 12 * time.Second
	watched = 2 // renewal periods that are watched
	helpers = 16
)

// held is what many held locks cost.
type held struct {
	locks      int
	renewals   float64 // statements in a third of the TTL
	perRenewal float64 // leases each of them extended, at least
	goroutines int     // more than before
	bytes      float64 // of heap for a lock
	lost       int
}

// crowd is a client with many locks.
type crowd struct {
	pool     *sql.DB
	client   *rowlock.Client
	locks    []*rowlock.Lock
	renewals atomic.Int64
	lost     atomic.Int64
}

// holdMany holds many locks at once and watches their renewals.
func holdMany(ctx context.Context, d *rig.Database, s settings, p *rig.Progress) (h *held, err error) {
	c := &crowd{locks: make([]*rowlock.Lock, s.held)}
	if err := c.open(d, s.lanes); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close(ctx)) }()
	p.Say(d.Name, fmt.Sprintf("taking %d locks", s.held))
	before := look()
	if err := c.each(func(n int) error { return c.take(ctx, n) }); err != nil {
		return nil, err
	}
	after := look()
	p.Step()
	p.Say(d.Name, "holding them")
	h = &held{locks: s.held, goroutines: after.goroutines - before.goroutines}
	h.bytes = (after.heap - before.heap) / float64(s.held)
	c.watch(ctx, h, p)
	p.Say(d.Name, "giving them back")
	return h, c.each(func(n int) error { return c.locks[n].Unlock(ctx) })
}

// open makes a client whose statements are counted on their way, and has it do everything once.
func (c *crowd) open(d *rig.Database, lanes int) (err error) {
	renews := d.Dialect.Text("renew")
	c.pool, err = faultdb.Open(d.Driver, d.Source, faultdb.Func(func(op faultdb.Op) faultdb.Fault {
		if op.Executes() && op.Query == renews {
			c.renewals.Add(1)
		}
		return faultdb.None
	}))
	if err != nil {
		return err
	}
	c.client, err = rowlock.Open(c.pool, d.Dialect, &rowlock.Config{
		TTL: heldTTL, Lanes: lanes, Strategy: rowlock.Insert, Logger: slog.New(slog.DiscardHandler),
		Reaper: rowlock.ReaperConfig{Off: true}, Hooks: rowlock.Hooks{Lost: func(string, int64, error) { c.lost.Add(1) }},
	})
	return err
}

func (c *crowd) close(ctx context.Context) error {
	err := ctx.Err()
	if c.client != nil {
		err = errors.Join(err, c.client.Close())
	}
	return errors.Join(err, c.pool.Close())
}

func (c *crowd) take(ctx context.Context, n int) (err error) {
	c.locks[n], err = c.client.Lock(ctx, race.Key('h', n%helpers, n))
	return err
}

// each calls f for every lock, from a few goroutines.
func (c *crowd) each(f func(n int) error) error {
	var next atomic.Int64
	var g errgroup.Group
	for range helpers {
		g.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= len(c.locks) {
					return nil
				}
				if err := f(n); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// watch counts the renewals of a few periods. A lease that was not lost was renewed in each of them.
func (c *crowd) watch(ctx context.Context, h *held, p *rig.Progress) {
	before := c.renewals.Load()
	for range watched {
		select {
		case <-time.After(heldTTL / 3):
		case <-ctx.Done():
		}
		p.Step()
	}
	h.renewals = float64(c.renewals.Load()-before) / watched
	h.perRenewal = float64(h.locks) / h.renewals
	h.lost = int(c.lost.Load())
	for _, l := range c.locks {
		if !time.Now().Before(l.Deadline()) {
			h.lost++
		}
	}
}

type sight struct {
	goroutines int
	heap       float64
}

// look waits until the collector has nothing more to find.
func look() sight {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first pass has left to finalizers and pools
	runtime.ReadMemStats(&m)
	return sight{runtime.NumGoroutine(), float64(m.HeapAlloc)}
}
