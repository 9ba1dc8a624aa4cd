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

func (s settings) measure(ctx context.Context, d *rig.Database, others *others, p *rig.Progress) (r *result, err error) {
	r = &result{kind: d.Kind}
	if r.facts, err = d.Facts(ctx); err != nil {
		return nil, err
	}
	f, err := openField(ctx, d, s, others)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, part := range r.parts(ctx, f, s, p) {
		if !s.parts[part.name] {
			continue
		}
		if err := part.run(); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return r, nil
}

type part struct {
	name string
	run  func() error
}

// parts are the workloads in their order: what leaves many rows behind comes last.
func (r *result) parts(ctx context.Context, f *field, s settings, p *rig.Progress) []part {
	return []part{
		{onFree, func() (err error) { r.free, err = f.uncontended(ctx, s, p); return err }},
		{onHot, func() (err error) { r.hot, err = f.contended(ctx, s, 1, p); return err }},
		{onSkewed, func() (err error) { r.skewed, err = f.contended(ctx, s, skewedKeys, p); return err }},
		{onAllocs, func() (err error) { r.allocs, err = f.allocations(ctx, p); return err }},
		{onWaiters, func() (err error) { r.crowds, err = f.crowds(ctx, s, p); return err }},
		{onHeld, func() (err error) {
			r.held, err = held.Many(ctx, f.d, held.Config{Locks: s.held, Lanes: s.lanes, TTL: s.heldTTL, Helpers: 256}, p)
			return err
		}},
		{onReaping, func() (err error) {
			if f.d.Name == s.reaps() {
				r.reaped, err = f.reaping(ctx, s, p)
			}
			return err
		}},
	}
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
