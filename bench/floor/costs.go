package main

import (
	"context"
	"runtime"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// costs is what one pair allocates, in the whole process.
type costs struct{ floor, recurring, fresh allocation }

type allocation struct{ objects, bytes float64 }

func (a allocation) minus(b allocation) allocation {
	return allocation{a.objects - b.objects, a.bytes - b.bytes}
}

// costs measures with one goroutine, after the race has warmed everything up.
func (f *field) costs(ctx context.Context, p *rig.Progress) (*costs, error) {
	out := new(costs)
	into := []*allocation{&out.floor, &out.recurring, &out.fresh}
	contenders := f.contenders(1)
	if err := f.warm(ctx, contenders, 1, 0); err != nil {
		return nil, err
	}
	for i, c := range contenders {
		p.Say(f.title, "allocations")
		a, err := f.allocations(ctx, c)
		if err != nil {
			return nil, err
		}
		*into[i] = a
		p.Step()
	}
	return out, nil
}

func (f *field) allocations(ctx context.Context, c race.Contender) (allocation, error) {
	const pairs = 300
	made := make([]string, pairs) // beforehand: a key is the caller's to make
	for n := range made {
		made[n] = f.keys.Next(c, 0, n)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, k := range made {
		if err := c.Pair(ctx, k); err != nil {
			return allocation{}, err
		}
	}
	runtime.ReadMemStats(&after)
	return allocation{
		float64(after.Mallocs-before.Mallocs) / pairs, float64(after.TotalAlloc-before.TotalAlloc) / pairs,
	}, nil
}
