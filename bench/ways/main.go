// Command ways compares the other ways to lock with their floors: the statements that each cannot
// do without, sent by hand over the raw driver. For once it compares with the transaction that is
// to be done once. It does so on each database it finds: SQLite always, and the servers whose data
// source names are in ROWLOCK_TEST_POSTGRES, _MARIADB and _MYSQL.
package main

import (
	"context"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.Main("ways", run) }

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	return race.Program(ctx, s.Kinds, s.steps(), s.Course(), s.Check,
		"database\tway\tgoroutines\ta second\tratio (min–max)\ttarget\t", s.measure)
}

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *race.Result, err error) {
	if r, err = race.NewResult(ctx, d); err != nil {
		return nil, err
	}
	keys := new(race.Keys) // never the same fresh one twice
	for _, way := range ways {
		if !s.parts[way.name] || !way.has(d.Kind) {
			continue
		}
		for _, goroutines := range s.goroutines {
			rows, err := s.race(ctx, d, way, keys, goroutines, p)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", way.name, err)
			}
			r.Rows = append(r.Rows, rows...)
		}
	}
	return r, nil
}

// race lets a way's contenders in, the floor first.
func (s settings) race(ctx context.Context, d *rig.Database, w way, keys *race.Keys, goroutines int, p *rig.Progress) ([]race.Row, error) {
	f, err := w.open(ctx, d, goroutines)
	if err != nil {
		return nil, err
	}
	defer f.close()
	for worker := range goroutines {
		for n := range race.Own {
			if err := f.make(ctx, keys.Next(f.contenders[0], worker, n)); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range f.contenders {
		if _, err := race.Turn(ctx, c, keys, goroutines, s.Turn/2); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	c := s.Course()
	c.Title, c.Goroutines, c.Progress = d.Name, goroutines, p
	return race.Run(ctx, c, f.contenders, keys)
}
