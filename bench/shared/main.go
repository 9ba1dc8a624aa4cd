// Command shared compares readers of one key with exclusive locks: a pair of RLock and Unlock where
// another process shares the key already, with a pair of Lock and Unlock, at one goroutine; and 256
// readers of one key with 256 goroutines that take turns at one. It does so on each database it
// finds: SQLite always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES,
// _MARIADB and _MYSQL. It also prints how many statements each pair sends: BEGIN and COMMIT are not
// counted.
package main

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.Main("shared", run) }

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	return race.Program(ctx, s.Kinds, s.steps(), s.Course(), s.Check,
		race.Pairs, s.measure)
}

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *race.Result, err error) {
	if r, err = race.NewResult(ctx, d); err != nil {
		return nil, err
	}
	f, err := newField(ctx, d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close(ctx)) }()
	for _, scene := range f.scenes(s) {
		c := s.Course()
		c.Title, c.Goroutines, c.Progress = d.Kind.Name, scene.goroutines, p
		if err := r.Counted(ctx, c, scene.contenders, f.sent); err != nil {
			return nil, err
		}
	}
	return r, nil
}
