package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/memstore"
)

// inMemory measures clients without a database. What a trace or metrics cost a pair is the same
// there, and it is not hidden by the time that a server takes. Divide it by what a pair takes with a
// database.
func (s settings) inMemory(ctx context.Context) (err error) {
	store := memstore.New()
	f, err := newField(func(cfg *rowlock.Config) (*rowlock.Client, error) { return rowlock.New(store, cfg) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	all := f.contenders()
	p := rig.NewProgress(s.rounds * len(all))
	r := &race.Result{Kind: rig.Kind{Name: "memory"}}
	c := race.Course{Title: "memory", Goroutines: 1, Rounds: s.rounds, Turn: s.turn / 4, Progress: p}
	keys := new(race.Keys)
	for _, one := range all { // the first turn of a client makes what it keeps
		if _, err := race.Turn(ctx, one, keys, 1, 100*time.Millisecond); err != nil {
			return err
		}
	}
	r.Rows, err = race.Run(ctx, c, all, keys)
	p.Done()
	if err != nil {
		return err
	}
	if err := f.allocated(ctx, r); err != nil {
		return err
	}
	race.Costs(os.Stdout, []*race.Result{r})
	return nil
}

// allocated adds what a pair of each client allocates.
func (f *field) allocated(ctx context.Context, r *race.Result) error {
	keys := new(race.Keys)
	for _, one := range f.contenders() {
		a, err := race.Allocated(ctx, one, keys, race.ManyPairs)
		if err != nil {
			return err
		}
		r.Allocated = append(r.Allocated, a)
	}
	return nil
}
