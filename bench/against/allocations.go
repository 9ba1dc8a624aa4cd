package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// alone is what a pair of one caller allocates and sends.
type alone struct {
	race.Allocation
	trips float64 // 0 on SQLite
}

// allocations is what one pair allocates, by contender: of the floor, and of ours with recurring and
// one-shot keys. It has a number of pairs and not a time, so that no load of the machine changes it.
func allocations(ctx context.Context, d *rig.Database, s settings, p *rig.Progress) (out map[string]alone, err error) {
	f := &field{d: d}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.openHands(ctx, 1); err != nil {
		return nil, err
	}
	c, err := f.open(d, s.connections)
	if err != nil {
		return nil, err
	}
	out = make(map[string]alone)
	for _, one := range []*contender{ // ours first: it makes the floor's rows
		{name: nameUpdate, key: recurring('q'), pair: c.update},
		{name: nameRaw, key: recurring('q'), pair: f.hands.rawPair},
		{name: nameOneShot, key: race.Contender{Series: 'p', Fresh: true}, pair: c.insert},
	} {
		p.Say(d.Name, "allocations")
		if out[one.name], err = f.allocated(ctx, one, s.allocated); err != nil {
			return nil, fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return out, nil
}

func (f *field) allocated(ctx context.Context, c *contender, pairs int) (a alone, err error) {
	one := c.key
	one.Pair = func(ctx context.Context, key string) error { return c.pair(ctx, 0, key, nil) }
	for range 2 { // the first is to warm up
		before := f.d.Wire.Trips()
		if a.Allocation, err = race.Allocated(ctx, one, &f.keys, pairs); err != nil {
			return a, err
		}
		a.trips = float64(f.d.Wire.Trips()-before) / float64(pairs)
	}
	return a, nil
}
