package main

import (
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
	rates      []float64 // pairs a second, by round
	ratios     []float64 // of its floor's in the same round
	latency    *hdrhistogram.Histogram
	err        error // why it has no more turns
}

// lasting is how much longer than a turn its last pairs may take: whoever waits is served before the turn is over.
const lasting = 30 * time.Second

// run gives every entry a turn in each round, the order turning with the rounds. Who fails once is out; the others go on.
func (s settings) run(ctx context.Context, title string, entries []*entry, p *rig.Progress, turn func(ctx context.Context, e *entry, d time.Duration) (float64, error)) error {
	for round := -1; round < s.rounds; round++ { // -1 is to warm up
		for i := range entries {
			e := entries[(i+max(0, round)*len(entries)/s.rounds)%len(entries)]
			p.Say(title, fmt.Sprintf("%s, %d", e.name, e.goroutines))
			if err := ctx.Err(); err != nil {
				return err
			}
			e.turn(ctx, s.turn, round < 0, turn)
			p.Step()
		}
	}
	return nil
}

func (e *entry) turn(ctx context.Context, d time.Duration, warm bool, turn func(context.Context, *entry, time.Duration) (float64, error)) {
	if e.err != nil {
		return
	}
	if warm {
		d /= 4
	}
	ctx, cancel := context.WithTimeout(ctx, d+lasting)
	defer cancel()
	rate, err := turn(ctx, e, d)
	switch {
	case err != nil:
		e.err = err
	case warm:
		e.latency.Reset()
	default:
		e.rates = append(e.rates, rate)
	}
}

// compare sets everybody's ratios to the floor.
func compare(entries []*entry, floor *entry) {
	if floor == nil {
		return
	}
	for _, e := range entries {
		e.ratios = ratios(e, floor)
	}
}

// ratios are a's rates as multiples of b's in the same round; none, if one of them has failed.
func ratios(a, b *entry) (out []float64) {
	if a == nil || b == nil || a.err != nil || b.err != nil {
		return nil
	}
	for round, rate := range a.rates {
		out = append(out, rate/b.rates[round])
	}
	return out
}

// best is the fastest of those that suit.
func best(entries []*entry, suits func(*entry) bool) (found *entry) {
	for _, e := range entries {
		if e.err == nil && len(e.rates) > 0 && suits(e) && (found == nil || rig.SpreadOf(e.rates).Median > rig.SpreadOf(found.rates).Median) {
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

// uncontended races on keys that nobody else wants. The floor of one goroutine has one goroutine too; anybody else's is the floor with as
// many as it is best with.
func (f *field) uncontended(ctx context.Context, s settings, p *rig.Progress) ([]*entry, error) {
	var entries []*entry
	for _, c := range f.contenders {
		for _, goroutines := range s.levelsOf(c) {
			entries = append(entries, &entry{contender: c, goroutines: goroutines, latency: newHistogram()})
		}
	}
	err := s.run(ctx, f.d.Name, entries, p, func(ctx context.Context, e *entry, d time.Duration) (float64, error) {
		return f.undisturbed(ctx, e, d)
	})
	if err != nil {
		return nil, err
	}
	compare(entries, best(entries, named(nameRaw)))
	alone := best(entries, with(nameRaw, 1))
	for _, e := range entries {
		if e.goroutines == 1 {
			e.ratios = ratios(e, alone)
		}
	}
	return entries, nil
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
