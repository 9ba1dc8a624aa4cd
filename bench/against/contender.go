package main

import (
	"context"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// pair locks a key, calls inside if it is not nil, and unlocks. Workers count from 0; each does one pair at a time.
type pair func(ctx context.Context, worker int, key string, inside func() error) error

// contender is one way to lock.
type contender struct {
	name   string
	system string // where it keeps its locks, as tables and charts say it
	pool   string // how many connections it has, in words
	pair   pair
	key    race.Contender // what its keys are made of
	meter  *rig.Meter     // what reads its turns' costs; nil: they are not read
	floor  string         // the raw statements that a ratio compares it with; empty means nameRaw

	levels  []int // how many goroutines it runs with on keys of their own
	contend pair  // on keys that others want too; nil: it is left out there
	wait    bool  // it has a turn with the crowd of waiters
	ready   func(ctx context.Context, workers int) error
}

// recurring names the series of a contender's keys, which come back.
func recurring(series byte) race.Contender { return race.Contender{Series: series} }

func (c *contender) prepare(ctx context.Context, workers int) error {
	if c.ready == nil {
		return nil
	}
	return c.ready(ctx, workers)
}

func call(inside func() error) error {
	if inside == nil {
		return nil
	}
	return inside()
}
