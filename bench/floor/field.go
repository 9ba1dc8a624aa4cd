package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/raw"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

// field is everybody who runs on one database. The floor comes first.
type field struct {
	title   string
	keys    race.Keys
	raws    []raw.Statements
	conns   []*rig.Conn
	clients []*rowlock.Client
}

func newField(ctx context.Context, d *rig.Database, allowed int) (*field, error) {
	f := &field{title: d.Name}
	for range d.Connections(allowed) {
		r, conn, err := raw.Dial(ctx, d)
		if conn != nil {
			f.conns = append(f.conns, conn)
		}
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.raws = append(f.raws, r)
	}
	for _, strategy := range []rowlock.Strategy{rowlock.Update, rowlock.Insert} {
		c, err := rowlock.Open(d.Pool, d.Dialect, &rowlock.Config{
			Connections: allowed, Strategy: strategy, Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
		})
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.clients = append(f.clients, c)
	}
	return f, nil
}

func (f *field) close() error {
	var errs []error
	for _, c := range f.clients {
		errs = append(errs, c.Close())
	}
	for _, c := range f.conns {
		c.Close()
	}
	return errors.Join(errs...)
}

// contenders returns who runs with so many goroutines. A floor with more connections than goroutines would only spread its
// work over colder ones.
func (f *field) contenders(goroutines int) []race.Contender {
	return []race.Contender{
		{Name: "floor", Series: 'f', Pair: floor(f.raws[:min(goroutines, len(f.raws))])},
		{Name: "recurring keys", Series: 'f', Target: 0.85, Pair: locking(f.clients[0])},
		{Name: "one-shot keys", Series: 'o', Target: 0.60, Pair: locking(f.clients[1]), Fresh: true},
	}
}

// floor is the two statements. Its goroutines share the connections, one statement at a time.
func floor(raws []raw.Statements) func(context.Context, string) error {
	free := make(chan raw.Statements, len(raws))
	for _, r := range raws {
		free <- r
	}
	return func(_ context.Context, key string) error {
		k, owner := []byte(key), lease.NewOwner()
		r := <-free
		token, err := r.Take(k, owner)
		free <- r
		if err != nil || token <= 0 {
			return fmt.Errorf("take %q: token %d: %w", key, token, err)
		}
		r = <-free
		err = r.Clear(k, owner)
		free <- r
		return err
	}
}

func locking(c *rowlock.Client) func(context.Context, string) error {
	return func(ctx context.Context, key string) error {
		l, err := c.Lock(ctx, key)
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
}
