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
	sum := &summary{settings: s, began: time.Now(), revision: revision()}
	if len(words(s.on)) == 0 {
		return errors.New("-on names no database: want postgres, mariadb, mysql")
	}
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

// onServer runs each fault's round in turn until the time is over, each at least once.
func onServer(ctx context.Context, s settings, e *engine, all []*fault, sum *summary) (err error) {
	srv, err := ownServer(ctx, s, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.end()) }()
	version := e.name + " " + srv.ask(ctx, e.version)
	sum.versions = append(sum.versions, version)
	fmt.Printf("chaos: %s, %s, seed %d\n", version, s.length, s.seed)
	end := fight.Now() + int64(s.length)
	able := sum.able(e.name, all)
	for n := 0; ctx.Err() == nil; n++ {
		f := sum.due(e.name, able, n, fight.Now()+int64(s.round) > end)
		if f == nil {
			return sum.enough(e.name, able)
		}
		r := &round{settings: s, number: n, fault: f, server: srv, seed: s.seed + uint64(n)}
		if err := sum.run(ctx, srv, r); err != nil {
			return err
		}
		if s.first && sum.violations > 0 {
			return nil
		}
	}
	return ctx.Err()
}

// due is the fault of round n, or nil. When the time is over, only those that have not struck often
// enough have another.
func (s *summary) due(database string, able []*fault, n int, over bool) *fault {
	if len(able) == 0 {
		return nil
	}
	if n < len(able) || !over {
		return able[n%len(able)]
	}
	for _, f := range able {
		if l := s.line(database, f.name); f.repeats && l.Struck < s.settings.times && l.Failed == 0 {
			return f
		}
	}
	return nil
}

// enough is an error if a fault has not struck so often as it should.
func (s *summary) enough(database string, able []*fault) error {
	for _, f := range able {
		if l := s.line(database, f.name); f.repeats && l.Struck < s.settings.times {
			return fmt.Errorf("%s %s: %d failovers, want %d", database, f.name, l.Struck, s.settings.times)
		}
	}
	return nil
}

// ownServer starts a server with the settings of the command line.
func ownServer(ctx context.Context, s settings, e *engine) (*server, error) {
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("rowlock-chaos-%d-%s", os.Getpid(), e.name))
	if e.chroot() != "" {
		folder = filepath.Join("/srv", filepath.Base(folder))
	}
	srv, err := newServer(ctx, e, folder)
	if err != nil || s.server == "" {
		return srv, err
	}
	srv.settings = words(s.server)
	if err := srv.restart(ctx); err != nil {
		return nil, errors.Join(err, srv.end())
	}
	return srv, nil
}

// able returns the faults that can be tried on a database, and notes why the others cannot.
func (s *summary) able(database string, all []*fault) (list []*fault) {
	for _, f := range all {
		why := f.cannot(database)
		s.line(database, f.name).Skipped = why
		if why == "" {
			list = append(list, f)
			continue
		}
		fmt.Printf("chaos: %s: %s: NOT TESTED: %s\n", database, f.name, why)
	}
	return list
}

// run adds what a round has shown. It writes the report after each round, because a run can be
// stopped.
func (s *summary) run(ctx context.Context, srv *server, r *round) error {
	f, err := r.run(ctx)
	if err != nil {
		return s.fail(ctx, srv, r, err)
	}
	s.add(f)
	return s.write()
}

// fail notes a round that could not be run to its end, and starts the server as it was before. The
// run goes on, and fails at its end.
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
