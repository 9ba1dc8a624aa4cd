package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/internal/memcluster"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/paxosbridge"
)

// kept is what a bridge may cost keys that never move.
const kept = 0.98

func config() *rowlock.Config {
	return &rowlock.Config{Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}}
}

// closers are closed in reverse.
type closers []io.Closer

func (c *closers) later(one io.Closer) { *c = append(*c, one) }

func (c closers) close() (err error) {
	for i := len(c) - 1; i >= 0; i-- {
		err = errors.Join(err, c[i].Close())
	}
	return err
}

// cost compares a client on the table with one on a bridge, whose cluster is asked for nothing.
func (s settings) cost(ctx context.Context, d *rig.Database, p *rig.Progress) (rows []race.Row, err error) {
	var open closers
	defer func() { err = errors.Join(err, open.close()) }()
	never := &paxosbridge.Config{Pin: func(string) paxosbridge.Pin { return paxosbridge.Never }, Logger: slog.New(slog.DiscardHandler)}
	var contenders []race.Contender
	for i, name := range []string{"the table", "a bridge"} {
		table, err := rowlock.OpenTable(d.Pool, d.Dialect, config())
		if err != nil {
			return nil, err
		}
		open.later(table)
		var store lease.Store = table
		if i == 1 {
			b, err := paxosbridge.New(ctx, table, memcluster.New(), never)
			if err != nil {
				return nil, err
			}
			open.later(b)
			store = b
		}
		c, err := rowlock.New(store, config())
		if err != nil {
			return nil, err
		}
		open.later(c)
		contenders = append(contenders, race.Contender{Name: name, Series: byte('t' + i), Target: kept * float64(i), Pair: pairOf(c)})
	}
	keys := new(race.Keys)
	for _, goroutines := range levels {
		for _, c := range contenders {
			if _, err := race.Turn(ctx, c, keys, goroutines, s.turn); err != nil {
				return nil, err
			}
		}
		at, err := race.Run(ctx, race.Course{Title: d.Name, Goroutines: goroutines, Rounds: s.rounds, Turn: s.turn, Progress: p}, contenders, keys)
		if err != nil {
			return nil, err
		}
		rows = append(rows, at...)
	}
	return rows, nil
}

func pairOf(c *rowlock.Client) func(context.Context, string) error {
	return func(ctx context.Context, key string) error {
		l, err := c.Lock(ctx, key)
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
}
