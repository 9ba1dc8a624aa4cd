package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// run races with so many goroutines.
func (f *field) run(ctx context.Context, s settings, goroutines int, p *rig.Progress) ([]race.Row, error) {
	contenders := f.contenders(goroutines)
	if err := f.warm(ctx, contenders, goroutines, s.turn/2); err != nil {
		return nil, err
	}
	return race.Run(ctx, race.Course{Title: f.title, Goroutines: goroutines, Rounds: s.rounds, Turn: s.turn, Progress: p}, contenders, &f.keys)
}

// warm makes the floor's rows, which it cannot, and lets everybody run in.
func (f *field) warm(ctx context.Context, contenders []race.Contender, goroutines int, d time.Duration) error {
	create := locking(f.clients[0])
	for worker := range goroutines {
		for n := range race.Own {
			if err := create(ctx, f.keys.Next(contenders[0], worker, n)); err != nil {
				return err
			}
		}
	}
	for _, c := range contenders {
		if _, err := race.Turn(ctx, c, &f.keys, goroutines, d); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}
