// Command trace compares a client that writes a trace, and one with OpenTelemetry's metrics, with one that does neither: pairs of Lock
// and Unlock, in turns, at 1 and at 64 goroutines. Beside the ratios it prints what a pair costs this process, which a busy machine
// changes less. It does so on each database it finds: SQLite always, and the servers whose data source names are in
// ROWLOCK_TEST_POSTGRES, _MARIADB and _MYSQL. It also prints how many events were written and dropped.
package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.Main("trace", run) }

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	if err := s.inMemory(ctx); err != nil {
		return err
	}
	return race.Program(ctx, s.kinds, s.steps(), s.course(), s.check,
		"database\tpair\tgoroutines\tpairs/s\tratio (min–max)\ttarget\t", s.measure)
}

func (s settings) course() race.Course { return race.Course{Rounds: s.rounds, Turn: s.turn} }

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *race.Result, err error) {
	if r, err = race.NewResult(ctx, d); err != nil {
		return nil, err
	}
	f, err := newField(func(cfg *rowlock.Config) (*rowlock.Client, error) {
		return rowlock.Open(d.Pool, d.Dialect, cfg)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, goroutines := range []int{1, s.many} {
		c := s.course()
		c.Title, c.Goroutines, c.Progress = d.Kind.Name, goroutines, p
		if err := r.Counted(ctx, c, f.contenders(), f.sent); err != nil {
			return nil, err
		}
	}
	if err := f.allocated(ctx, r); err != nil {
		return nil, err
	}
	stats := f.traced.Stats()
	r.Facts = append(r.Facts, fmt.Sprintf("%d events written, %d dropped", stats.Traced, stats.TraceDropped))
	return r, nil
}
