// Command fenced compares sections, Lock, BEGIN, Fence, UPDATE, COMMIT, Unlock, with the transaction
// that has SELECT FOR UPDATE in place of the lock: with Unlock after the COMMIT, with UnlockTx before
// it, and by DoTx. All callers want one key, or take several in turn. It does so on each database it
// finds: SQLite always, and the servers whose data source names are in ROWLOCK_TEST_POSTGRES,
// _MARIADB and _MYSQL. Its table of statements has round trips, also of BEGIN and COMMIT; SQLite has
// none.
package main

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
	"github.com/rowlockdb/rowlock/bench/internal/section"
)

const sections = "database\tsection\tgoroutines\tsections/s\tratio (min–max)\ttarget\t"

func main() { rig.Main("fenced", run) }

func run(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	return race.Program(ctx, s.Kinds, len(s.Kinds)*s.Rounds*4, s.Course(), s.Check, sections, s.measure)
}

func (s settings) measure(ctx context.Context, d *rig.Database, p *rig.Progress) (r *race.Result, err error) {
	if r, err = race.NewResult(ctx, d); err != nil {
		return nil, err
	}
	// Or database/sql keeps two, and callers of several keys dial as often as they begin a transaction.
	d.Pool.SetMaxIdleConns(2 * s.goroutines)
	f, err := section.New(ctx, d, s.keys)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c := s.Course()
	c.Title, c.Goroutines, c.Progress = d.Kind.Name, s.goroutines, p
	return r, r.Counted(ctx, c, f.Contenders(), d.Wire.Trips)
}
