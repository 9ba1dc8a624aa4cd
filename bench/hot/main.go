// Command hot measures one key that many processes want: each locks it, holds it and unlocks it, again and again, from one goroutine.
// It does so on each database it finds: SQLite always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES, _MARIADB
// and _MYSQL.
//
// The opponent is polling by hand: the conditional UPDATE that any lease lock needs, tried again after a pause, and the UPDATE that
// makes the row free. Several pauses take part, because the best one depends on the database and on the number of processes; rowlock
// is compared with the best. All take turns in every round, so that other work of the machine slows all of them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.MainWithWorkers("hot", run, crew.Work) }

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	all, err := rig.Measure(ctx, s.kinds, s.steps(), s.measure)
	if err != nil {
		return err
	}
	return report(os.Stdout, s, all)
}

// result is what was measured on one database.
type result struct {
	kind   rig.Kind
	facts  []string
	scenes []*scene
}

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *result, err error) {
	r = &result{kind: d.Kind}
	if r.facts, err = d.Facts(ctx); err != nil {
		return nil, err
	}
	if err := d.MakeFree(ctx, s.keys(), 0); err != nil {
		return nil, err
	}
	c, err := newCounter(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	for _, processes := range s.processes {
		for _, hold := range s.holds {
			one, err := s.run(ctx, d, c, processes, hold, p)
			if err != nil {
				return nil, fmt.Errorf("%d processes: %w", processes, err)
			}
			r.scenes = append(r.scenes, one)
		}
	}
	return r, nil
}
