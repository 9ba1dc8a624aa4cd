package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

func config(lanes int, strategy rowlock.Strategy) *rowlock.Config {
	return &rowlock.Config{
		Lanes: lanes, Strategy: strategy, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	}
}

// ourPair locks with a client.
func ourPair(c *rowlock.Client) pair {
	return func(ctx context.Context, _ int, key string, inside func() error) error {
		l, err := c.Lock(ctx, key)
		if err != nil {
			return err
		}
		return errors.Join(call(inside), l.Unlock(ctx))
	}
}

// strategies opens a client of each kind that shares the table of leases.
func (f *field) strategies(d *rig.Database, lanes int) (update, insert pair, err error) {
	var pairs [2]pair
	for i, strategy := range []rowlock.Strategy{rowlock.Update, rowlock.Insert} {
		c, err := rowlock.Open(d.Pool, d.Dialect, config(lanes, strategy))
		if err != nil {
			return nil, nil, err
		}
		f.closeLater(c)
		pairs[i] = ourPair(c)
	}
	return pairs[0], pairs[1], nil
}

// stored opens a client on a store.
func (f *field) stored(store interface {
	lease.Store
	io.Closer
}, err error,
) (pair, error) {
	if err != nil {
		return nil, err
	}
	f.closeLater(store)
	c, err := rowlock.New(store, config(0, rowlock.Update))
	if err != nil {
		return nil, err
	}
	f.closeLater(c)
	return ourPair(c), nil
}

func (f *field) optimistic(d *rig.Database) (pair, error) {
	store, err := optimistic.New(d.Pool, d.Dialect)
	return f.stored(store, err)
}

func (f *field) forUpdate(d *rig.Database, connections int) (pair, error) {
	store, err := forupdate.New(d.Pool, d.Dialect, forupdate.Connections(connections))
	return f.stored(store, err)
}
