package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/adhocore/gronx"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/examples/internal/source"
	"github.com/rowlockdb/rowlock/schema"
)

// worker is one process.
type worker struct {
	name  string
	takes time.Duration
	db    *source.DB
	runs  string // the table that says what was run
	locks *rowlock.Client
	out   *json.Encoder
	deaf  context.CancelCauseFunc // called when the reader of our output is gone
}

// event is what a worker prints, a line each.
type event struct {
	Worker string    `json:"worker"`
	Tick   time.Time `json:"tick"`
	What   string    `json:"what"`         // runs, done, skipped, or failed
	By     string    `json:"by,omitempty"` // which worker ran a skipped tick, or why one failed
}

// work follows the schedule until ctx ends, or until the process that started it is gone.
func work(ctx context.Context, cfg settings, out io.Writer) (err error) {
	w := &worker{name: cfg.name, takes: cfg.takes, out: json.NewEncoder(out)}
	ctx, w.deaf = context.WithCancelCause(ctx)
	defer w.deaf(nil)
	if w.db, err = source.Open(ctx, cfg.db, dialect.Prefix(cfg.prefix)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.db.Close()) }()
	if err = w.open(ctx, cfg.prefix); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.locks.Close()) }()
	for at := time.Now(); ; {
		// Next after the last, not after now: a tick that came due while we waited for another
		// worker's run is read late, not never.
		if at, err = gronx.NextTickAfter(cfg.schedule, at, false); err != nil {
			return fmt.Errorf("-schedule %q: %w", cfg.schedule, err)
		}
		if sleep(ctx, time.Until(at)) != nil {
			return nil
		}
		if err := w.tick(ctx, at); err != nil && ctx.Err() == nil {
			w.tell(at, "failed", err.Error())
		}
	}
}

// open makes the tables, which any number of workers may do at once: rowlock's by Migrate, and ours
// under a lock, because CREATE TABLE IF NOT EXISTS fails on PostgreSQL when two say it in the same
// moment.
func (w *worker) open(ctx context.Context, prefix string) (err error) {
	w.runs = prefix + runs
	if err = schema.Migrate(ctx, w.db.DB.DB, w.db.Dialect); err != nil {
		return err
	}
	if w.locks, err = rowlock.Open(w.db, w.db.Dialect, &rowlock.Config{TTL: ttl}); err != nil {
		return err
	}
	err = w.locks.Do(ctx, "cron/tables", func(ctx context.Context, _ *rowlock.Lock) error {
		_, err := w.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+w.runs+` (job VARCHAR(100) NOT NULL, tick BIGINT NOT NULL, ran_by VARCHAR(100) NOT NULL, PRIMARY KEY (job, tick))`)
		return err
	})
	if err != nil {
		return errors.Join(err, w.locks.Close())
	}
	return nil
}

// runs is our own table's name, behind the prefix.
const runs = "runs"

func (w *worker) tell(at time.Time, what, by string) {
	if err := w.out.Encode(event{w.name, at, what, by}); err != nil {
		w.deaf(err)
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
