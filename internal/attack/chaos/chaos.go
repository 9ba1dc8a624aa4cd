//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/fight"
)

// chaos runs rounds on each database, and sums up.
func chaos(ctx context.Context, s settings) error {
	all, err := chosen(s.faults)
	if err != nil {
		return err
	}
	sum := &summary{settings: s, began: time.Now()}
	for _, name := range words(s.on) {
		e := engines[name]
		if e == nil {
			return fmt.Errorf("-on %q: want postgres, mariadb, mysql", name)
		}
		if err := onServer(ctx, s, e, all, sum); err != nil {
			return errors.Join(err, sum.write())
		}
	}
	sum.print()
	if err := sum.write(); err != nil {
		return err
	}
	if sum.violations > 0 {
		return fmt.Errorf("%w %d times", errViolated, sum.violations)
	}
	return errors.Join(sum.failed...)
}

// fail notes a round that could not be run to its end, and has the server be as before. The run goes on, and fails at its end.
func (s *summary) fail(ctx context.Context, srv *server, r *round, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	err = fmt.Errorf("%s could not be run: %w", r.name(), err)
	fmt.Println("chaos:", err)
	s.failed = append(s.failed, err)
	s.line(srv.name, r.fault.name).Failed++
	srv.variables = nil
	return srv.restart(ctx)
}

// onServer runs each fault's round in turn until the time is over, each at least once.
func onServer(ctx context.Context, s settings, e *engine, all []*fault, sum *summary) (err error) {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("rowlock-chaos-%d-%s", os.Getpid(), e.name))
	if e.chroot() != "" {
		folder = filepath.Join("/srv", filepath.Base(folder))
	}
	srv, err := newServer(ctx, e, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.end()) }()
	srv.settings = words(s.server)
	if len(srv.settings) > 0 {
		if err := srv.restart(ctx); err != nil {
			return err
		}
	}
	sum.versions = append(sum.versions, e.name+" "+srv.ask(ctx, e.version))
	fmt.Printf("chaos: %s %s, %s, seed %d\n", e.name, srv.ask(ctx, e.version), s.length, s.seed)
	end := fight.Now() + int64(s.length)
	seed := s.seed
	for n := 0; ; n++ {
		f := all[n%len(all)]
		if fight.Now()+int64(s.round) > end && n >= len(all) || ctx.Err() != nil {
			return ctx.Err()
		}
		if why := f.cannot(e.name); why != "" {
			if n < len(all) {
				fmt.Printf("chaos: %s: %s: NOT TESTED: %s\n", e.name, f.name, why)
				sum.skip(e.name, f, why)
			}
			if len(all) == 1 {
				return nil
			}
			continue
		}
		r := &round{settings: s, number: n, fault: f, server: srv, seed: seed}
		found, err := r.run(ctx)
		if err != nil {
			if err = sum.fail(ctx, srv, r, err); err != nil {
				return err
			}
			seed++
			continue
		}
		sum.add(found)
		if err := sum.write(); err != nil { // what there is outlives a run that is stopped
			return err
		}
		seed++
		if s.first && sum.violations > 0 {
			return nil
		}
	}
}
