package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// lineResult is how fast a key goes from one to the next in one process.
type lineResult struct {
	goroutines        int
	handOvers, commit rig.Spread // a second
	ratio             rig.Spread // of the commits in the same round
}

// line is who has turns: goroutines that contend for one key, and one connection that commits updates of one row.
type line struct {
	client *rowlock.Client
	update *update
	s      settings
}

func runLine(ctx context.Context, d *rig.Database, s settings, p *rig.Progress) (r *lineResult, err error) {
	l := &line{s: s}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.open(ctx, d); err != nil {
		return nil, err
	}
	var rates [2][]float64
	var ratios []float64
	for round := -1; round < s.rounds; round++ { // -1 is to warm up
		var rate [2]float64
		for i := range rate {
			who := (i + round + 1) % 2
			p.Say(d.Name, fmt.Sprintf("%d in line", s.line))
			if rate[who], err = l.turn(ctx, who); err != nil {
				return nil, err
			}
			if round >= 0 {
				rates[who] = append(rates[who], rate[who])
				p.Step()
			}
		}
		if round >= 0 {
			ratios = append(ratios, rate[1]/rate[0])
		}
	}
	return &lineResult{s.line, rig.SpreadOf(rates[1]), rig.SpreadOf(rates[0]), rig.SpreadOf(ratios)}, nil
}

func (l *line) open(ctx context.Context, d *rig.Database) (err error) {
	l.client, err = rowlock.Open(d.Pool, d.Dialect, &rowlock.Config{
		Logger: slog.New(slog.DiscardHandler), Reaper: rowlock.ReaperConfig{Off: true},
	})
	if err != nil {
		return err
	}
	if err := l.lock(ctx, updatedKey); err != nil {
		return err
	}
	l.update, err = newUpdate(ctx, d)
	return err
}

func (l *line) close() (err error) {
	if l.client != nil {
		err = l.client.Close()
	}
	if l.update != nil {
		err = errors.Join(err, l.update.close())
	}
	return err
}

func (l *line) turn(ctx context.Context, who int) (float64, error) {
	if who == 0 {
		return rig.Turn(ctx, 1, l.s.turn, func(context.Context, int, int) error { return l.update.once() })
	}
	return rig.Turn(ctx, l.s.line, l.s.turn, func(ctx context.Context, _, _ int) error { return l.lock(ctx, "bench/line") })
}

func (l *line) lock(ctx context.Context, key string) error {
	lock, err := l.client.Lock(ctx, key)
	if err != nil {
		return err
	}
	return lock.Unlock(ctx)
}
