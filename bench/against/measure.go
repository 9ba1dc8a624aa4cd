package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/bench/internal/held"
	"github.com/rowlockdb/rowlock/bench/internal/race"
	"github.com/rowlockdb/rowlock/bench/internal/rig"
)

// result is what was found out about one database, and about the others if it was their host.
type result struct {
	kind                    rig.Kind
	facts                   []string
	sections                *race.Result
	free, keys, hot, skewed []*entry
	crowds                  []*served
	scenes                  []*scene
	held                    *held.Cost
	reaped                  *reaped
	allocs                  map[string]alone
	failed                  []failure
	took                    []took
}

// took is how long a workload took.
type took struct {
	part string
	time time.Duration
}

// failure is why a workload has no result. The others keep theirs.
type failure struct {
	part string
	err  error
}

// part is a workload of one database.
type part struct {
	name string
	run  func(p *rig.Progress) error
}

// measure has the process to itself for what is measured of all of it, allocations and held locks:
// no client of a field is open then.
func (s settings) measure(ctx context.Context, d *rig.Database, o *others, p *rig.Progress) (r *result, err error) {
	r = &result{kind: d.Kind}
	if r.facts, err = d.Facts(ctx); err != nil {
		return nil, err
	}
	r.each(s, p, []part{
		{onFenced, func(p *rig.Progress) (err error) { r.sections, err = s.sections(ctx, d, p); return err }},
		{onAllocs, func(p *rig.Progress) (err error) { r.allocs, err = allocations(ctx, d, s, p); return err }},
	})
	if err := r.races(ctx, d, s, o, p); err != nil {
		r.failed = append(r.failed, failure{"races", err})
	}
	r.each(s, p, []part{
		{onProcesses, func(p *rig.Progress) (err error) { r.scenes, err = s.processes(ctx, d, o, p); return err }},
		{onHeld, func(p *rig.Progress) (err error) { // last: it leaves many rows behind
			cfg := held.Config{Locks: s.held, Connections: s.connections, TTL: s.heldTTL, Helpers: 256}
			r.held, err = held.Many(ctx, d, cfg, p)
			return err
		}},
	})
	return r, ctx.Err()
}

// each runs those parts that were asked for. One that fails does not take the others' results away.
func (r *result) each(s settings, p *rig.Progress, parts []part) {
	for _, part := range parts {
		if !s.parts[part.name] {
			continue
		}
		began := time.Now()
		if err := part.run(p.Within()); err != nil {
			r.failed = append(r.failed, failure{part.name, err})
		}
		r.took = append(r.took, took{part.name, time.Since(began)})
		p.Step()
	}
}

// races runs the workloads that need all contenders.
func (r *result) races(ctx context.Context, d *rig.Database, s settings, o *others, p *rig.Progress) (err error) {
	f, err := openField(ctx, d, s, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	r.each(s, p, []part{
		{onFree, func(p *rig.Progress) (err error) { r.free, err = f.uncontended(ctx, s, f.contenders, p); return err }},
		{onKeys, func(p *rig.Progress) (err error) { r.keys, err = f.varied(ctx, s, p); return err }},
		{onHot, func(p *rig.Progress) (err error) { r.hot, err = f.contended(ctx, s, 1, p); return err }},
		{onSkewed, func(p *rig.Progress) (err error) {
			if d.Name == s.host() { // to know it of one database is enough
				r.skewed, err = f.contended(ctx, s, skewedKeys, p)
			}
			return err
		}},
		{onWaiters, func(p *rig.Progress) (err error) { r.crowds, err = f.crowds(ctx, s, p); return err }},
		{onReaping, func(p *rig.Progress) (err error) {
			if d.Name == s.reaps() {
				r.reaped, err = f.reaping(ctx, s, p)
			}
			return err
		}},
	})
	return nil
}

// steps is how many steps the progress has: one for each workload of each database.
func (s settings) steps() int { return len(s.kinds) * len(s.parts) }

// failures are those of workloads and of contenders, which end no run.
func failures(all []*result) error {
	var errs []error
	for _, r := range all {
		for _, f := range r.failed {
			errs = append(errs, fmt.Errorf("%s, %s: %w", r.kind.Name, f.part, f.err))
		}
		errs = append(errs, r.entriesFailed()...)
		for _, c := range r.crowds {
			if c.err != nil {
				errs = append(errs, fmt.Errorf("%s, %s, %d waiters: %w", r.kind.Name, c.name, c.waiters, c.err))
			}
		}
	}
	return errors.Join(errs...)
}

func (r *result) entriesFailed() (errs []error) {
	for _, entries := range [][]*entry{r.free, r.keys, r.hot, r.skewed} {
		for _, e := range entries {
			if e.err != nil {
				errs = append(errs, fmt.Errorf("%s, %s, %d goroutines: %w", r.kind.Name, e.name, e.goroutines, e.err))
			}
		}
	}
	for _, one := range r.scenes {
		for _, run := range one.runs {
			if run.err != nil {
				errs = append(errs, fmt.Errorf("%s, %s, %d processes: %w", r.kind.Name, run.Name, one.processes, run.err))
			}
		}
	}
	return errs
}
