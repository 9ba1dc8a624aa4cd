package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

// Sweep is what one sweep of the reaper took.
type Sweep struct {
	Rows, Removed int64
	Seconds       float64
	Statements    int64 // that the server has run; 0 on SQLite, which has none to count them
}

// A walk finds nothing dead; a reap finds all dead at once.
const (
	walk = time.Hour
	reap = time.Duration(0)
)

// sweeps sweeps the tables, as the reaper does by default. Those that would take minutes
// to be reaped are left out.
func (s settings) sweeps(ctx context.Context, all []*Table, retention time.Duration, p *rig.Progress) (err error) {
	counter, err := rig.NewStatements(ctx, all[0].d)
	defer func() { err = errors.Join(err, counter.Close()) }()
	if err != nil {
		return err
	}
	for _, t := range all {
		if retention == reap && t.Rows > s.reaped {
			continue
		}
		p.Say(t.d.Name, fmt.Sprintf("sweeping %d rows", t.Rows))
		found, err := t.sweep(ctx, lease.SweepOptions{Retention: retention, Batch: 200, Pause: s.pause}, counter)
		if err != nil {
			return fmt.Errorf("sweep of %d rows: %w", t.Rows, err)
		}
		if retention == reap {
			t.Reap = found
		} else {
			t.Walk = found
		}
	}
	return nil
}

func (t *Table) sweep(ctx context.Context, o lease.SweepOptions, counter *rig.Statements) (found Sweep, err error) {
	store, err := rowlock.OpenTable(t.d.Pool, t.d.Dialect, &rowlock.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	before, err := counter.Count(ctx)
	if err != nil {
		return found, err
	}
	found.Rows = int64(t.Rows)
	found.Seconds, err = seconds(func() error { found.Removed, err = store.Sweep(ctx, o); return err })
	if err != nil {
		return found, err
	}
	found.Statements, err = counter.Since(ctx, before)
	return found, err
}

// seconds is how long f took.
func seconds(f func() error) (float64, error) {
	began := time.Now()
	err := f()
	return time.Since(began).Seconds(), err
}
