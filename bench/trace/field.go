package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// field is a client without a trace, and one with.
type field struct{ plain, traced *rowlock.Client }

func newField(d *rig.Database) (f *field, err error) {
	f = &field{}
	quiet := rowlock.Config{
		Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	}
	if f.plain, err = rowlock.Open(d.Pool, d.Dialect, &quiet); err != nil {
		return nil, err
	}
	quiet.Trace.On = true
	if f.traced, err = rowlock.Open(d.Pool, d.Dialect, &quiet); err != nil {
		return nil, errors.Join(err, f.plain.Close())
	}
	return f, nil
}

func (f *field) close() error { return errors.Join(f.plain.Close(), f.traced.Close()) }

// sent is how many statements both clients have sent.
func (f *field) sent() int64 { return f.plain.Stats().Statements + f.traced.Stats().Statements }

// contenders lock the same keys in turns.
func (f *field) contenders() []race.Contender {
	return []race.Contender{
		{Name: "without a trace", Series: 't', Pair: pair(f.plain)},
		{Name: "with a trace", Series: 't', Target: 0.95, Pair: pair(f.traced)},
	}
}

func pair(c *rowlock.Client) func(context.Context, string) error {
	return func(ctx context.Context, key string) error {
		l, err := c.Lock(ctx, key)
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
}
