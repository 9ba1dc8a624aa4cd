// Command slots compares a semaphore of 8 slots under 64 goroutines with 8 keys under as many
// goroutines, each of which wants one of the keys. It does so on each database it finds: SQLite
// always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES, _MARIADB and
// _MYSQL. It also prints how many statements each pair sends: BEGIN and COMMIT are not counted.
package main

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.Main("slots", run) }

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	return race.Program(ctx, s.Kinds, len(s.Kinds)*s.Rounds*2, s.Course(), s.Check,
		race.Pairs, s.measure)
}

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *race.Result, err error) {
	if r, err = race.NewResult(ctx, d); err != nil {
		return nil, err
	}
	f, err := newField(d, s.slots)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	c := s.Course()
	c.Title, c.Goroutines, c.Progress = d.Kind.Name, s.goroutines, p
	return r, r.Counted(ctx, c, f.contenders(), f.sent)
}
