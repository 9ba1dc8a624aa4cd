// Command floor compares a Lock and Unlock of rowlock with the floor: the two statements that any lease lock must run, sent
// by hand over the raw driver. It prints how much of the floor's rate rowlock reaches on each database it finds: SQLite
// always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES, _MARIADB and _MYSQL.
//
// Contenders take turns in short rounds, and a ratio is always of two neighbours in time: what else the machine does then
// slows both.
package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/held"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.Main("floor", run) }

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

// result is what was found out about one database.
type result struct {
	kind  rig.Kind
	facts []string
	rates []race.Row
	costs *costs
	held  *held.Cost
}

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *result, err error) {
	r = &result{kind: d.Kind}
	if r.facts, err = d.Facts(ctx); err != nil {
		return nil, err
	}
	if s.rates || s.allocs {
		err = r.pairs(ctx, d, s, p)
	}
	if err == nil && s.held > 0 {
		r.held, err = held.Many(ctx, d, held.Config{Locks: s.held, Connections: s.connections, TTL: 12 * time.Second, Helpers: 16}, p)
	}
	return r, err
}

// pairs runs what needs the contenders.
func (r *result) pairs(ctx context.Context, d *rig.Database, s settings, p *rig.Progress) (err error) {
	f, err := newField(ctx, d, s.connections)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, goroutines := range s.goroutines {
		if !s.rates {
			break
		}
		rows, err := f.run(ctx, s, goroutines, p)
		if err != nil {
			return err
		}
		r.rates = append(r.rates, rows...)
	}
	if s.allocs {
		r.costs, err = f.costs(ctx, p)
	}
	return err
}
