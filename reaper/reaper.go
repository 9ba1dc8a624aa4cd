// Package reaper removes rows that have been dead for long, and never lets a token come back.
//
// A released row stays in the table, because taking it again is one UPDATE and its token counts on.
// The rows of keys that are used once would pile up. So one process sweeps the table from time to
// time. It is elected through a lock, which it keeps until it stops or loses it. It uses small
// transactions and removes only rows that have been dead for longer than Config.Retention. Before a
// row goes, the floor that its successor counts from rises above its token (lease.Sweeper).
package reaper

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/lease"
)

// Key is the lock through which one process is elected to sweep.
const Key = lease.Reserved + "reaper"

// Config says when to sweep and how hard. The zero value has the defaults.
type Config struct {
	// Off sweeps nothing, for a process that should leave it to others.
	Off bool
	// Every is the time between sweeps; 0 means a minute. Each is shortened by up to a tenth at
	// random, so that processes started together do not compete for the election together.
	Every time.Duration
	// Retention is how long a row must have been dead; 0 means an hour. It costs only space: a key
	// that is locked again within it keeps its row.
	Retention time.Duration
	// Batch is the largest number of rows that one transaction removes; 0 means 200. New keys of
	// the same bucket (one of 256) wait while it runs.
	Batch int
	// Pause is slept between transactions; 0 means 5 ms, and a negative value no pause.
	Pause time.Duration
}

// WithDefaults replaces zero values by the defaults. A negative Every becomes the default, because
// no time is negative.
func (c Config) WithDefaults() Config {
	c.Every = cmp.Or(max(c.Every, 0), time.Minute)
	c.Retention = cmp.Or(c.Retention, time.Hour)
	c.Batch = cmp.Or(c.Batch, 200)
	c.Pause = cmp.Or(c.Pause, 5*time.Millisecond)
	return c
}

// Elect tries to win the election. The returned context ends when the election is lost; resign ends
// it. If another process is elected, the error is lease.ErrHeld.
type Elect func(ctx context.Context) (elected context.Context, resign func(), err error)

// Reaper sweeps until it is stopped.
type Reaper struct {
	store  lease.Sweeper
	elect  Elect
	cfg    Config
	log    *slog.Logger
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// Start returns a Reaper whose goroutine runs until Stop.
func Start(store lease.Sweeper, elect Elect, cfg Config, log *slog.Logger) *Reaper {
	r := &Reaper{store: store, elect: elect, cfg: cfg.WithDefaults(), log: tell.Logger(log)}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.wg.Go(func() { r.loop(ctx) })
	return r
}

// Stop ends a sweep that is under way and returns when the goroutine has ended. A nil Reaper has
// none.
func (r *Reaper) Stop() {
	if r == nil {
		return
	}
	r.cancel()
	r.wg.Wait()
}

func (r *Reaper) loop(ctx context.Context) {
	var t term
	defer t.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.cfg.Every - rand.N(r.cfg.Every/10+1)):
		}
		removed, err := r.sweep(ctx, &t)
		switch {
		case err == nil && removed > 0:
			r.log.LogAttrs(ctx, slog.LevelDebug, "rowlock: dead rows removed",
				slog.Int64("rows", removed))
		case err != nil && ctx.Err() == nil && !errors.Is(err, lease.ErrHeld):
			r.log.LogAttrs(ctx, slog.LevelWarn, "rowlock: sweep ended early, the next will go on",
				slog.Int64("rows", removed), slog.Any("error", err))
		}
		if err != nil {
			t.end() // another process may succeed
		}
	}
}

// Once sweeps the whole table if it wins the election, and returns how many rows it has removed.
func (r *Reaper) Once(ctx context.Context) (int64, error) {
	var t term
	defer t.end()
	return r.sweep(ctx, &t)
}

// term is one term of office; the zero term is none. It outlasts a sweep: if the lock were released
// after each, every process would find it free in turn and sweep what another has just swept.
type term struct {
	elected context.Context
	resign  func()
}

func (t *term) end() {
	if t.resign != nil {
		t.resign()
	}
	*t = term{}
}

// sweep sweeps the whole table within t, or within a new term if t is over and the election is won.
func (r *Reaper) sweep(ctx context.Context, t *term) (removed int64, err error) {
	if t.elected == nil || t.elected.Err() != nil {
		t.end()
		if t.elected, t.resign, err = r.elect(ctx); err != nil {
			*t = term{}
			return 0, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.elected, cancel)()
	return r.store.Sweep(ctx, lease.SweepOptions{
		Retention: r.cfg.Retention, Batch: r.cfg.Batch, Pause: r.cfg.Pause,
	})
}
