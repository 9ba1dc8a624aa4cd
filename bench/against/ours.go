package main

import (
	"context"
	"errors"
	"io"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/setting"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/optimistic"
)

func config(connections int, strategy rowlock.Strategy, relaxed bool) *rowlock.Config {
	c := setting.Config(connections, relaxed)
	c.Strategy = strategy
	return c
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

// clients are the ways to lock of clients that share the table of leases.
type clients struct {
	update, insert pair
	relaxed        pair // nil if the database has no such release
}

func (f *field) open(d *rig.Database, connections int) (c clients, err error) {
	if c.update, err = f.client(d, config(connections, rowlock.Update, false)); err != nil {
		return c, err
	}
	if c.insert, err = f.client(d, config(connections, rowlock.Insert, false)); err != nil {
		return c, err
	}
	if setting.CanRelax(d.Name) {
		c.relaxed, err = f.client(d, config(connections, rowlock.Update, true))
	}
	return c, err
}

func (f *field) client(d *rig.Database, cfg *rowlock.Config) (pair, error) {
	c, err := rowlock.Open(d.Pool, d.Dialect, cfg)
	if err != nil {
		return nil, err
	}
	f.closeLater(c)
	return ourPair(c), nil
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
	c, err := rowlock.New(store, config(0, rowlock.Update, false))
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
