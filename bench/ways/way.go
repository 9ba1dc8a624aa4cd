package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/lease"
)

// way is a way to lock, and its floor.
type way struct {
	name       string
	contenders int
	has        func(rig.Kind) bool // whether a database has it
	open       func(ctx context.Context, d *rig.Database, goroutines int) (*field, error)
}

// field is all contenders of one database. The floor comes first.
type field struct {
	contenders []race.Contender
	make       func(ctx context.Context, key string) error // makes the rows that the floor cannot
	closers    []func()
}

func (f *field) close() {
	for _, c := range f.closers {
		c()
	}
}

var ways = []way{
	{"optimistic", 2, everywhere, openOptimistic},
	{"forupdate", 2, onServers, openForUpdate},
	{"once", 4, everywhere, openOnce},
}

func everywhere(rig.Kind) bool { return true }

func onServers(k rig.Kind) bool { return k.Name != "sqlite" }

// target is what a store is to reach of its floor.
const target = 0.85

// lockers adds a client of the store as a contender. A store has keys of its own.
func (f *field) lockers(name string, series byte, store lease.Store) error {
	c, err := rowlock.New(store, &rowlock.Config{Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true}})
	if err != nil {
		return err
	}
	f.closers = append([]func(){func() { _ = c.Close() }}, f.closers...) // before the store
	pair := func(ctx context.Context, key string) error {
		l, err := c.Lock(ctx, key)
		if err != nil {
			return err
		}
		return l.Unlock(ctx)
	}
	f.contenders = append(f.contenders, race.Contender{Name: name, Series: series, Target: target, Pair: pair})
	f.make = pair
	return nil
}

// hands are connections that goroutines share.
type hands chan *rig.Hand

func (f *field) hands(ctx context.Context, d *rig.Database, n int, write, read map[string]string) (hands, error) {
	all := make(hands, n)
	for range n {
		h, err := rig.NewHand(ctx, d, write, read)
		if err != nil {
			return nil, err
		}
		f.closers = append(f.closers, h.Close)
		all <- h
	}
	return all, nil
}

// use runs do on one of them.
func (all hands) use(do func(h *rig.Hand) error) error {
	h := <-all
	defer func() { all <- h }()
	return do(h)
}

const ttl = int64(30_000_000) // µs

func floorName(statements int) string { return fmt.Sprintf("floor: %d statements", statements) }
