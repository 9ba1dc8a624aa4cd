package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// row is what a contender reached with so many goroutines.
type row struct {
	name       string
	goroutines int
	rate       rig.Spread // pairs a second
	ratio      rig.Spread // of the floor's rate in the same round
	target     float64
}

// race gives every contender a turn in each round, the order turning with the rounds.
func race(ctx context.Context, f *field, s settings, goroutines int, p *rig.Progress) ([]row, error) {
	contenders := f.contenders(goroutines)
	if err := f.warm(ctx, contenders, goroutines, s.turn/2); err != nil {
		return nil, err
	}
	rates := make([][]float64, len(contenders))
	for round := range s.rounds {
		for i := range contenders {
			at := (i + round) % len(contenders)
			p.Say(f.title, fmt.Sprintf("%s, %d", contenders[at].name, goroutines))
			rate, err := turn(ctx, contenders[at], &f.keys, goroutines, s.turn)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", contenders[at].name, err)
			}
			rates[at] = append(rates[at], rate)
			p.Step()
		}
	}
	return rows(contenders, rates, goroutines), nil
}

// warm makes the floor's rows, which it cannot, and lets everybody run in.
func (f *field) warm(ctx context.Context, contenders []contender, goroutines int, d time.Duration) error {
	create := locking(f.clients[0])
	for worker := range goroutines {
		for n := range own {
			if err := create(ctx, f.keys.next(contenders[0], worker, n)); err != nil {
				return err
			}
		}
	}
	for _, c := range contenders {
		if _, err := turn(ctx, c, &f.keys, goroutines, d); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

func rows(contenders []contender, rates [][]float64, goroutines int) (out []row) {
	for i, c := range contenders {
		ratios := make([]float64, len(rates[i]))
		for round := range ratios {
			ratios[round] = rates[i][round] / rates[0][round]
		}
		out = append(out, row{c.name, goroutines, rig.SpreadOf(rates[i]), rig.SpreadOf(ratios), c.target})
	}
	return out
}

// turn lets a contender run for so long and returns its pairs a second.
func turn(ctx context.Context, c contender, k *keys, goroutines int, d time.Duration) (float64, error) {
	return rig.Turn(ctx, goroutines, d, func(ctx context.Context, worker, n int) error {
		return c.pair(ctx, k.next(c, worker, n))
	})
}
