package crew

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// Job is what a worker is told first.
type Job struct {
	Database, Source, Prefix string
	Redis, Etcd              string // where they are; empty: they take no part
}

// JobOf is the job of those who work on a database.
func JobOf(d *rig.Database) Job { return Job{Database: d.Name, Source: d.Source, Prefix: d.Prefix} }

// Task is what a worker is told for each turn.
type Task struct {
	Way             Way
	Goroutines      int  // of each process
	Own             bool // each goroutine has keys of its own; else all want the same
	Shared          int  // how many keys all want; 0 means one
	Warm, For, Hold time.Duration

	Process int // which one of them the worker is
}

// Answer is what a worker has done in a turn.
type Answer struct {
	Pairs int
	Waits []int64 // µs until each had its key
}

// Team is all workers.
type Team struct{ rig.Team }

// Start starts so many workers. The team that it returns beside an error is to be ended too.
func Start(ctx context.Context, processes int, j Job) (Team, error) {
	t, err := rig.StartTeam(ctx, processes, j)
	return Team{t}, err
}

// Turn has all workers open what they lock with, outside the measured time; contend; and close it.
// Around, if it is not nil, is called before they contend, and what it returns after it.
func (t Team) Turn(what Task, around func() (func() error, error)) ([]Answer, error) {
	each := func(i int) any { what.Process = i; return what }
	if err := t.done(each); err != nil {
		return nil, err
	}
	after := func() error { return nil }
	if around != nil {
		var err error
		if after, err = around(); err != nil {
			return nil, err
		}
	}
	all, err := t.contend()
	if err != nil {
		return nil, err
	}
	if err := after(); err != nil {
		return nil, err
	}
	return all, t.done(func(int) any { return true })
}

func (t Team) contend() ([]Answer, error) {
	all := make([]Answer, len(t.Team))
	if err := t.Tell(true); err != nil {
		return nil, err
	}
	return all, t.Hear(func(i int) any { return &all[i] })
}

func (t Team) done(what func(i int) any) error {
	if err := t.TellEach(what); err != nil {
		return err
	}
	return t.Hear(func(int) any { return new(bool) })
}
