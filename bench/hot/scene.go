package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// scene is so many processes that hold the key for so long.
type scene struct {
	processes int
	hold      time.Duration
	entries   []*entry
}

// entry is what one way to lock reached in a scene.
type entry struct {
	crew.Way
	crew.Tally
	statements []float64 // a pair, by round
}

func (s settings) run(ctx context.Context, d *rig.Database, c *counter, processes int, hold time.Duration, p *rig.Progress) (_ *scene, err error) {
	one := &scene{processes: processes, hold: hold}
	for _, w := range s.ways() {
		one.entries = append(one.entries, &entry{Way: w})
	}
	workers, err := crew.Start(ctx, processes, crew.JobOf(d))
	defer func() { err = errors.Join(err, workers.End()) }()
	if err != nil {
		return nil, err
	}
	for round := range s.rounds {
		for i := range one.entries {
			e := one.entries[(i+round)%len(one.entries)]
			p.Say(d.Name, fmt.Sprintf("%d × %s, %s", processes, hold, e.Name))
			if err := e.turn(ctx, workers, c, crew.Task{Way: e.Way, Goroutines: 1, Warm: s.warm, For: s.turn, Hold: hold}); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			p.Step()
		}
	}
	return one, nil
}

func (e *entry) turn(ctx context.Context, t crew.Team, c *counter, what crew.Task) error {
	var sent int64
	all, err := t.Turn(what, func() (func() error, error) {
		before, err := c.count(ctx)
		return func() error {
			after, err := c.count(ctx)
			sent = after - before
			return err
		}, err
	})
	if err != nil {
		return err
	}
	pairs := e.Add(all, what.For)
	e.statements = append(e.statements, float64(sent)/float64(max(pairs, 1))*what.For.Seconds()/(what.Warm+what.For).Seconds())
	return nil
}

// best is the polling by hand that was fastest.
func (one *scene) best() *entry {
	return slices.MaxFunc(one.entries[1:], func(a, b *entry) int {
		return int(rig.SpreadOf(a.Rates).Median - rig.SpreadOf(b.Rates).Median)
	})
}

// ratio is that of two neighbors in time, round by round.
func (e *entry) ratio(to *entry) rig.Spread {
	ratios := make([]float64, len(e.Rates))
	for i := range ratios {
		ratios[i] = e.Rates[i] / math.Max(to.Rates[i], 0.1)
	}
	return rig.SpreadOf(ratios)
}
