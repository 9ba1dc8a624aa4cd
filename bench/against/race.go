package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// entry is a contender with so many goroutines, and what it reached.
type entry struct {
	*contender
	goroutines int
	rates      []float64     // pairs per second, by round
	ratio      *rig.Interval // of its floor's rate; nil if there is none
	costs      []rig.Cost    // of a pair, by round
	latency    *hdrhistogram.Histogram
	err        error // why it has no more turns
}

// lasting is how much longer than a turn its last pairs may take: whoever waits is served before the turn is over.
const lasting = 30 * time.Second

// turn lets an entry run for so long, and returns its pairs per second.
type turn func(ctx context.Context, e *entry, d time.Duration) (float64, error)

// run gives every entry a turn in each round, the order turning with the rounds. Who fails once is out; the others go on.
func (s settings) run(ctx context.Context, title string, entries []*entry, p *rig.Progress, turn turn) error {
	for round := -1; round < s.rounds; round++ { // -1 is to warm up
		for i := range entries {
			e := entries[(i+max(0, round)*len(entries)/s.rounds)%len(entries)]
			p.Say(title, fmt.Sprintf("%s, %d", e.name, e.goroutines))
			if err := ctx.Err(); err != nil {
				return err
			}
			e.turn(ctx, s.turn, round < 0, turn)
		}
	}
	return nil
}

func (e *entry) turn(ctx context.Context, d time.Duration, warm bool, turn turn) {
	if e.err != nil {
		return
	}
	if warm {
		d /= 4
	}
	ctx, cancel := context.WithTimeout(ctx, d+lasting)
	defer cancel()
	rate, cost, err := e.metered(ctx, func() (float64, error) { return turn(ctx, e, d) })
	switch {
	case err != nil:
		e.err = err
	case warm:
		e.latency.Reset()
	default:
		e.rates, e.costs = append(e.rates, rate), append(e.costs, cost)
	}
}

// metered reads what a pair of the turn costs.
func (e *entry) metered(ctx context.Context, turn func() (float64, error)) (rate float64, c rig.Cost, err error) {
	if e.meter == nil {
		rate, err = turn()
		return rate, c, err
	}
	before := e.latency.TotalCount()
	end, err := e.meter.Begin(ctx)
	if err != nil {
		return 0, c, err
	}
	if rate, err = turn(); err != nil {
		return 0, c, err
	}
	c, err = end(e.latency.TotalCount() - before)
	return rate, c, err
}

// compare sets everybody's ratios to the floor.
func compare(entries []*entry, floor *entry) {
	for _, e := range entries {
		e.ratio = ratio(e, floor)
	}
}

// ratio is the median of a's rates as a multiple of that of b's; nil, if one of them has failed or
// has not run.
func ratio(a, b *entry) *rig.Interval {
	if !ran(a) || !ran(b) {
		return nil
	}
	r := rig.RatioOfMedians(a.rates, b.rates)
	return &r
}

// ran is true of an entry that has reached something in each of its turns.
func ran(e *entry) bool { return e != nil && e.err == nil && len(e.rates) > 0 }

// best is the fastest of those that suit.
func best(entries []*entry, suits func(*entry) bool) (found *entry) {
	for _, e := range entries {
		if ran(e) && suits(e) && (found == nil || rig.Median(e.rates) > rig.Median(found.rates)) {
			found = e
		}
	}
	return found
}

// named suits whoever has this name, with any number of goroutines.
func named(name string) func(*entry) bool { return func(e *entry) bool { return e.name == name } }

// with suits whoever has this name and so many goroutines.
func with(name string, goroutines int) func(*entry) bool {
	return func(e *entry) bool { return e.name == name && e.goroutines == goroutines }
}

// uncontended races on keys that nobody else wants. The floor of one goroutine has one goroutine too;
// the floor of all others has as many as it is best with.
func (f *field) uncontended(ctx context.Context, s settings, contenders []*contender, p *rig.Progress) ([]*entry, error) {
	var entries []*entry
	for _, c := range contenders {
		for _, goroutines := range s.levelsOf(c) {
			entries = append(entries, &entry{contender: c, goroutines: goroutines, latency: newHistogram()})
		}
	}
	if err := s.run(ctx, f.d.Name, entries, p, f.undisturbed); err != nil {
		return nil, err
	}
	for _, e := range entries {
		e.ratio = ratio(e, floorOf(e, entries))
	}
	return entries, nil
}

func floorOf(e *entry, entries []*entry) *entry {
	name := cmp.Or(e.floor, nameRaw)
	if e.goroutines == 1 {
		return best(entries, with(name, 1))
	}
	return best(entries, named(name))
}

func (f *field) undisturbed(ctx context.Context, e *entry, d time.Duration) (float64, error) {
	t := new(times)
	defer func() { t.addTo(e.latency) }()
	return rig.Turn(ctx, e.goroutines, d, func(ctx context.Context, worker, n int) error {
		key := f.keys.Next(e.key, worker, n)
		began := time.Now()
		err := e.pair(ctx, worker, key, nil)
		t.record(worker, time.Since(began))
		return err
	})
}
