package main

import (
	"context"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// costs is what one pair allocates, in the whole process.
type costs struct{ floor, recurring, fresh race.Allocation }

// costs measures with one goroutine, after the race has warmed everything up.
func (f *field) costs(ctx context.Context, p *rig.Progress) (*costs, error) {
	out := new(costs)
	into := []*race.Allocation{&out.floor, &out.recurring, &out.fresh}
	contenders := f.contenders(1)
	if err := f.warm(ctx, contenders, 1, 0); err != nil {
		return nil, err
	}
	for i, c := range contenders {
		p.Say(f.title, "allocations")
		a, err := race.Allocated(ctx, c, &f.keys, race.ManyPairs)
		if err != nil {
			return nil, err
		}
		*into[i] = a
		p.Step()
	}
	return out, nil
}
