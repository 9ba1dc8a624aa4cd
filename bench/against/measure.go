package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rowlockdb/rowlock/bench/internal/held"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// result is what was found out about one database, and about the others if it was their host.
type result struct {
	kind              rig.Kind
	facts             []string
	free, hot, skewed []*entry
	crowds            []*served
	held              *held.Cost
	reaped            *reaped
	allocs            map[string]race.Allocation
}

// measure has the process to itself for what is measured of all of it, allocations and held locks: nobody else's client is open then.
func (s settings) measure(ctx context.Context, d *rig.Database, others *others, p *rig.Progress) (r *result, err error) {
	r = &result{kind: d.Kind}
	if r.facts, err = d.Facts(ctx); err != nil {
		return nil, err
	}
	if s.parts[onAllocs] {
		if r.allocs, err = allocations(ctx, d, s, p); err != nil {
			return nil, fmt.Errorf("allocations: %w", err)
		}
	}
	if err := r.races(ctx, d, s, others, p); err != nil {
		return nil, err
	}
	if s.parts[onHeld] { // last: it leaves many rows behind
		r.held, err = held.Many(ctx, d, held.Config{Locks: s.held, Lanes: s.lanes, TTL: s.heldTTL, Helpers: 256}, p)
	}
	return r, err
}

type part struct {
	name string
	run  func() error
}

// races runs the workloads that need everybody.
func (r *result) races(ctx context.Context, d *rig.Database, s settings, others *others, p *rig.Progress) (err error) {
	f, err := openField(ctx, d, s, others)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, part := range []part{
		{onFree, func() (err error) { r.free, err = f.uncontended(ctx, s, p); return err }},
		{onHot, func() (err error) { r.hot, err = f.contended(ctx, s, 1, p); return err }},
		{onSkewed, func() (err error) { r.skewed, err = f.contended(ctx, s, skewedKeys, p); return err }},
		{onWaiters, func() (err error) { r.crowds, err = f.crowds(ctx, s, p); return err }},
		{onReaping, func() (err error) {
			if d.Name == s.reaps() {
				r.reaped, err = f.reaping(ctx, s, p)
			}
			return err
		}},
	} {
		if !s.parts[part.name] {
			continue
		}
		if err := part.run(); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// steps is how many steps the progress has.
func (s settings) steps(o *others) (n int) {
	turns := s.rounds + 1
	for _, k := range s.kinds {
		levels, contenders, waits := 18, 4, 1 // of SQLite's field
		if k.Name != "sqlite" {
			levels, contenders = levels+6, contenders+2
		}
		if k.Name == s.host() {
			for _, c := range o.contenders {
				levels, contenders = levels+len(c.levels), contenders+1
				if c.wait {
					waits++
				}
			}
		}
		of := map[string]int{
			onFree: levels * turns, onHot: contenders * turns, onSkewed: contenders * turns, onAllocs: 3, onWaiters: waits, onHeld: held.Steps,
		}
		if k.Name == s.reaps() {
			of[onReaping] = 1 + 2*s.rounds
		}
		for part, steps := range of {
			if s.parts[part] {
				n += steps
			}
		}
	}
	return n
}
