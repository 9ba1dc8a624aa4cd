// Package reaper removes rows that have been dead for long, without ever letting a token come back.
//
// A released row stays in the table: taking it again is one UPDATE, and its token counts on. Rows of keys that are used once
// would pile up, so one process, elected through a lock of its own until it stops or loses it, sweeps the table now and then:
// small transactions, only rows dead for longer than Config.Retention, and before a row goes the floor its successor will
// count from is raised above its token (lease.Sweeper).
package reaper

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Key is the lock through which one process is elected to sweep.
const Key = lease.Reserved + "reaper"

// Config says when to sweep and how hard. The zero value means the defaults.
type Config struct {
	// Off leaves dead rows alone: for processes that should not sweep, when others do.
	Off bool
	// Every is the time between sweeps; the zero value means a minute. Each is moved by up to a tenth, so that processes
	// started together do not bid together.
	Every time.Duration
	// Retention is how long a row must have been dead; the zero value means an hour. It costs only space: a key locked
	// again within it keeps its row.
	Retention time.Duration
	// Batch is the most rows removed by one transaction; the zero value means 200. While it runs, new keys of the same
	// bucket (one of 256) wait.
	Batch int
	// Pause is slept between transactions; the zero value means 5 ms, a negative one none.
	Pause time.Duration
}

// WithDefaults fills in the zero values. An Every below 0 is none that could be waited for, and becomes the default.
func (c Config) WithDefaults() Config {
	c.Every = cmp.Or(max(c.Every, 0), time.Minute)
	c.Retention = cmp.Or(c.Retention, time.Hour)
	c.Batch = cmp.Or(c.Batch, 200)
	c.Pause = cmp.Or(c.Pause, 5*time.Millisecond)
	return c
}

// Elect tries to become the one who sweeps. The returned context ends when the election is lost; resign gives it up. When
// another process has it the error is lease.ErrHeld.
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
	r := &Reaper{store: store, elect: elect, cfg: cfg.WithDefaults(), log: log}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.wg.Go(func() { r.loop(ctx) })
	return r
}

// Stop ends a sweep under way and returns when the goroutine is gone.
func (r *Reaper) Stop() {
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
			r.log.LogAttrs(ctx, slog.LevelDebug, "rowlock: dead rows removed", slog.Int64("rows", removed))
		case err != nil && ctx.Err() == nil && !errors.Is(err, lease.ErrHeld):
			r.log.LogAttrs(ctx, slog.LevelWarn, "rowlock: sweep ended early, the next will go on", slog.Int64("rows", removed), slog.Any("error", err))
		}
		if err != nil {
			t.end() // another may have better luck
		}
	}
}

// Once sweeps the whole table if the election is won, and returns how many rows it removed.
func (r *Reaper) Once(ctx context.Context) (int64, error) {
	var t term
	defer t.end()
	return r.sweep(ctx, &t)
}

// term is one time in office; the zero term is none. It outlasts a sweep: were the lock given back after each, every process
// would find it free in its turn and sweep what another has just swept.
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
	return r.store.Sweep(ctx, lease.SweepOptions{Retention: r.cfg.Retention, Batch: r.cfg.Batch, Pause: r.cfg.Pause})
}
