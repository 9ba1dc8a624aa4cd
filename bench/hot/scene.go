package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

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
	way
	rates      []float64 // pairs a second, by round
	statements []float64 // a pair, by round
	waits      []int64   // µs, of all rounds
	pairs      []int     // by process, of all rounds
}

func (s settings) run(ctx context.Context, d *rig.Database, c *counter, processes int, hold time.Duration, p *rig.Progress) (_ *scene, err error) {
	one := &scene{processes: processes, hold: hold}
	for _, w := range s.ways() {
		one.entries = append(one.entries, &entry{way: w, pairs: make([]int, processes)})
	}
	workers, err := rig.StartTeam(ctx, processes, job{d.Name, d.Source, d.Prefix})
	defer func() { err = errors.Join(err, workers.End()) }()
	if err != nil {
		return nil, err
	}
	for round := range s.rounds {
		for i := range one.entries {
			e := one.entries[(i+round)%len(one.entries)]
			p.Say(d.Name, fmt.Sprintf("%d × %s, %s", processes, hold, e.Name))
			if err := e.turn(ctx, team{workers}, c, task{e.way, s.warm, s.turn, hold}); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Name, err)
			}
			p.Step()
		}
	}
	return one, nil
}

func (e *entry) turn(ctx context.Context, t team, c *counter, what task) error {
	if err := t.prepare(what); err != nil {
		return err
	}
	before, err := c.count(ctx)
	if err != nil {
		return err
	}
	all, err := t.run()
	if err != nil {
		return err
	}
	after, err := c.count(ctx)
	if err != nil {
		return err
	}
	if err := t.finish(); err != nil {
		return err
	}
	pairs := 0
	for i, waits := range all {
		pairs += len(waits)
		e.pairs[i] += len(waits)
		e.waits = append(e.waits, waits...)
	}
	e.rates = append(e.rates, float64(pairs)/what.For.Seconds())
	e.statements = append(e.statements, float64(after-before)/float64(max(pairs, 1))*what.For.Seconds()/(what.Warm+what.For).Seconds())
	return nil
}

// wait is the quantile of the waiting times.
func (e *entry) wait(q float64) time.Duration {
	if len(e.waits) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(e.waits))
	return time.Duration(sorted[int(q*float64(len(sorted)-1))]) * time.Microsecond
}

// shares are what the processes had that had least and most, of an equal share.
func (e *entry) shares() (least, most float64) {
	sum := 0
	for _, n := range e.pairs {
		sum += n
	}
	equal := math.Max(1, float64(sum)) / float64(len(e.pairs))
	return float64(slices.Min(e.pairs)) / equal, float64(slices.Max(e.pairs)) / equal
}

// best is the polling by hand that was fastest.
func (one *scene) best() *entry {
	return slices.MaxFunc(one.entries[1:], func(a, b *entry) int {
		return int(rig.SpreadOf(a.rates).Median - rig.SpreadOf(b.rates).Median)
	})
}

// ratio is that of two neighbors in time, round by round.
func (e *entry) ratio(to *entry) rig.Spread {
	ratios := make([]float64, len(e.rates))
	for i := range ratios {
		ratios[i] = e.rates[i] / math.Max(to.rates[i], 0.1)
	}
	return rig.SpreadOf(ratios)
}
