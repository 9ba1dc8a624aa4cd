package main

import (
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// job is what a worker is told first, task what it is told for each turn.
type job struct{ Database, Source, Prefix string }

type task struct {
	Way             way
	Warm, For, Hold time.Duration
}

// team is all workers.
type team struct{ rig.Team }

// prepare has all workers open what they lock with, outside the measured time.
func (t team) prepare(what task) error { return t.done(what) }

// run has all workers contend, and returns their waiting times.
func (t team) run() ([][]int64, error) {
	all := make([][]int64, len(t.Team))
	if err := t.Tell(true); err != nil {
		return nil, err
	}
	return all, t.Hear(func(i int) any { return &all[i] })
}

// finish has all workers close what they have locked with.
func (t team) finish() error { return t.done(true) }

func (t team) done(what any) error {
	if err := t.Tell(what); err != nil {
		return err
	}
	return t.Hear(func(int) any { return new(bool) })
}
