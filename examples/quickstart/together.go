package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// countTogether is the first chapter: many processes, one row.
func countTogether(ctx context.Context, p *place, cfg settings, s *story) error {
	s.title(fmt.Sprintf("1. %d processes count to %d in one row", cfg.processes, cfg.count))
	s.line("   Each reads the row, works for a millisecond and writes back one more.")

	bare, err := p.race(ctx, cfg, false)
	if err != nil {
		return err
	}
	s.line("\n   %s", s.paint(bold, "without a lock"))
	bare.tellLoss(s)

	locked, err := p.race(ctx, cfg, true)
	if err != nil {
		return err
	}
	s.line("\n   %s, in %.1f s", s.paint(bold, "with the lock"), locked.took.Seconds())
	locked.tellShares(s)
	s.check(locked.additions() == cfg.count && locked.counter == cfg.count, "one holder at a time",
		fmt.Sprintf("expected %d, got %d, in %d additions", cfg.count, locked.counter, locked.additions()))
	return nil
}

// race is one run of all processes, and what came of it.
type race struct {
	reports []message
	counter int64
	took    time.Duration
}

func (p *place) race(ctx context.Context, cfg settings, locked bool) (r race, err error) {
	if err := p.write(ctx, "counter", 0); err != nil {
		return r, err
	}
	j := job{Source: p.Source, Prefix: p.prefix, CountTo: cfg.count, Locked: locked}
	all, err := startReady(ctx, slices.Repeat([]job{j}, cfg.processes)...)
	defer func() { err = endAll(all, err) }()
	if err != nil {
		return r, err
	}
	began := time.Now()
	if r.reports, err = allCount(ctx, all); err != nil {
		return r, err
	}
	r.took = time.Since(began)
	r.counter, err = p.read(ctx, "counter")
	return r, err
}

func allCount(ctx context.Context, all []*process) (reports []message, err error) {
	for _, p := range all {
		if err := p.tell("begin"); err != nil {
			return nil, err
		}
	}
	for _, p := range all {
		m, err := p.expect(ctx, "counted")
		if err != nil {
			return nil, err
		}
		reports = append(reports, m)
	}
	return reports, nil
}

func (r race) additions() (sum int64) {
	for _, m := range r.reports {
		sum += m.Additions
	}
	return sum
}

func (r race) tellLoss(s *story) {
	if lost := r.additions() - r.counter; lost > 0 {
		s.loss(fmt.Sprintf("%d additions were made, but the row says %d: %d were overwritten", r.additions(), r.counter, lost))
		return
	}
	s.line("   none lost this time, by luck")
}

func (r race) tellShares(s *story) {
	const width = 24
	for _, m := range r.reports {
		n := int(m.Additions * width / max(r.additions(), 1))
		s.line("   process %-7d %s%s %4d in %.1f s, longest wait %.2f s", m.PID,
			s.paint(blue, strings.Repeat("█", n)), s.paint(faint, strings.Repeat("·", width-n)), m.Additions, m.Took.Seconds(), m.Waited.Seconds())
	}
}
