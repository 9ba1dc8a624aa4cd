package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

const (
	contending = 64   // goroutines
	skewedKeys = 1000 // of which a fifth is wanted four times out of five
)

// contended are a contender's keys that everybody may want. No worker has that number, so that nobody has them to himself.
func contended(c *contender, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = race.Key(c.key.Series, 99_999, i)
	}
	return keys
}

// contended races on keys that others want too, of which there are so many.
func (f *field) contended(ctx context.Context, s settings, keys int, p *rig.Progress) ([]*entry, error) {
	entries := f.contending(s.level(contending))
	for _, e := range entries {
		if err := e.prepare(ctx, e.goroutines); err != nil {
			e.err = err
		}
	}
	err := s.run(ctx, f.d.Name, entries, p, func(ctx context.Context, e *entry, d time.Duration) (float64, error) {
		return e.meet(ctx, keys, d)
	})
	compare(entries, best(entries, named(nameRaw)))
	return entries, err
}

func (f *field) contending(goroutines int) (entries []*entry) {
	for _, c := range f.contenders {
		if c.contend != nil {
			entries = append(entries, &entry{contender: c, goroutines: goroutines, latency: newHistogram()})
		}
	}
	return entries
}

// meet has the workers want the same keys, and sees that only one has each.
func (e *entry) meet(ctx context.Context, n int, d time.Duration) (float64, error) {
	keys, guards, t := contended(e.contender, n), make([]guard, n), new(times)
	defer func() { t.addTo(e.latency) }()
	rate, err := rig.Turn(ctx, e.goroutines, d, func(ctx context.Context, worker, _ int) error {
		at := pick(n)
		began := time.Now()
		err := e.contend(ctx, worker, keys[at], guards[at].visit)
		t.record(worker, time.Since(began))
		return err
	})
	for i := range guards {
		if wrong := guards[i].check(); wrong != nil && err == nil {
			err = fmt.Errorf("%q: %w", keys[i], wrong)
		}
	}
	return rate, err
}

// pick chooses one of n: one of the first fifth, four times out of five.
func pick(n int) int {
	few := max(1, n/5)
	if n == few || rand.N(5) > 0 {
		return rand.N(few)
	}
	return few + rand.N(n-few)
}
