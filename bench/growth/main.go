// Command growth measures what becomes of rowlock when it grows: tables of a thousand to ten million
// keys, 1 to 64 processes, and up to a million locks that one process holds. It does so on each
// database it finds: SQLite always, and the servers whose data source names are in
// ROWLOCK_TEST_POSTGRES, _MARIADB and _MYSQL. Nothing else should use them meanwhile: a server counts
// the statements of all its clients.
//
// Sizes take turns in each round, and a ratio is of the times of one round. With -out it writes
// growth.md with its pictures. The figures are kept beside them, so that -only runs one scene again
// and keeps those of the others.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rowlockdb/rowlock/bench/internal/crew"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

func main() { rig.MainWithWorkers("growth", run, crew.Work) }

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	p := rig.NewProgress(s.steps())
	var all figures
	if s.out != "" {
		if err := all.read(s.out); err != nil {
			return err
		}
	}
	failed := s.play(ctx, &all, p)
	p.Done()
	if err := report(os.Stdout, s, &all); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

// play measures what was asked for. A scene that fails on one database leaves the others theirs.
func (s settings) play(ctx context.Context, all *figures, p *rig.Progress) error {
	var failed []error
	note := func(scene string, k rig.Kind, err error) {
		if err != nil {
			failed = append(failed, fmt.Errorf("%s, %s: %w", scene, k.Name, err))
		}
	}
	for _, k := range s.kinds {
		note("tables", k, s.on(ctx, k, all, note, p))
	}
	return errors.Join(failed...)
}

// on plays the scenes on one database.
func (s settings) on(ctx context.Context, k rig.Kind, all *figures, note func(string, rig.Kind, error), p *rig.Progress) (err error) {
	d, err := rig.Open(ctx, k)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	facts, err := d.Facts(ctx)
	if err != nil {
		return err
	}
	if s.parts[onKeys] {
		r := s.begin(facts)
		r.Keys, err = s.keys(ctx, k, p)
		note(onKeys, k, all.Keys.enter(k.Name, r, err))
	}
	if s.parts[onProcesses] && k.Driver != "sqlite" {
		r := s.begin(facts)
		r.Processes, err = s.processes(ctx, d, p)
		note(onProcesses, k, all.Processes.enter(k.Name, r, err))
	}
	if s.parts[onHeld] {
		r := s.begin(facts)
		r.Held, err = s.heldLocks(ctx, k, p)
		note(onHeld, k, all.Held.enter(k.Name, r, err))
	}
	return nil
}
