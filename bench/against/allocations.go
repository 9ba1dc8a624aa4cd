package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// allocations is what one pair allocates, by contender: of the floor, and of ours with recurring and one-shot keys.
func allocations(ctx context.Context, d *rig.Database, s settings, p *rig.Progress) (out map[string]race.Allocation, err error) {
	f := &field{d: d}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.openHands(ctx, 1); err != nil {
		return nil, err
	}
	update, insert, err := f.strategies(d, s.lanes)
	if err != nil {
		return nil, err
	}
	out = make(map[string]race.Allocation)
	for _, c := range []*contender{ // ours first: it makes the floor's rows
		{name: nameUpdate, key: recurring('q'), pair: update},
		{name: nameRaw, key: recurring('q'), pair: f.hands.rawPair},
		{name: nameOneShot, key: race.Contender{Series: 'p', Fresh: true}, pair: insert},
	} {
		p.Say(d.Name, "allocations")
		if out[c.name], err = f.allocated(ctx, c); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		p.Step()
	}
	return out, nil
}

func (f *field) allocated(ctx context.Context, c *contender) (a race.Allocation, err error) {
	one := c.key
	one.Pair = func(ctx context.Context, key string) error { return c.pair(ctx, 0, key, nil) }
	for range 2 { // the first is to warm up
		if a, err = race.Allocated(ctx, one, &f.keys); err != nil {
			return a, err
		}
	}
	return a, nil
}
