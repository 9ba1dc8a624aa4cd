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

// prefix keeps rowlock's tables apart from others in the database.
const prefix = "cron_"

// worker is one process.
type worker struct {
	name  string
	takes time.Duration
	db    *source.DB
	locks *rowlock.Client
	out   *json.Encoder
}

// event is what a worker prints, a line each.
type event struct {
	Worker string    `json:"worker"`
	Tick   time.Time `json:"tick"`
	What   string    `json:"what"`         // runs, done, skipped, or failed
	By     string    `json:"by,omitempty"` // who has run a tick that was skipped, or why one failed
}

// work follows the schedule until ctx ends.
func work(ctx context.Context, cfg settings, out io.Writer) (err error) {
	w := &worker{name: cfg.name, takes: cfg.takes, out: json.NewEncoder(out)}
	if w.db, err = open(ctx, cfg.db); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.db.Close()) }()
	if w.locks, err = rowlock.Open(w.db, w.db.Dialect, &rowlock.Config{TTL: ttl}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.locks.Close()) }()
	for at := time.Now(); ; {
		// Next after the last, not after now: what came due while we waited for somebody else's run is looked at late, not never.
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

// open opens the database, with rowlock's tables and ours, which any number of workers may make at once.
func open(ctx context.Context, name string) (*source.DB, error) {
	db, err := source.Open(ctx, name, dialect.Prefix(prefix))
	if err != nil {
		return nil, err
	}
	err = schema.Migrate(ctx, db.DB.DB, db.Dialect)
	if err == nil {
		_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS cron_runs (job VARCHAR(100) NOT NULL, tick BIGINT NOT NULL, ran_by VARCHAR(100) NOT NULL, PRIMARY KEY (job, tick))`)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (w *worker) tell(at time.Time, what, by string) { _ = w.out.Encode(event{w.name, at, what, by}) }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
