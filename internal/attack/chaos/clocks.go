//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

var clockFaults = []*fault{
	{
		name: "clock-step", what: "the server's clock set by ±5 s or ±1 h while it runs", clock: true, alone: true, able: noFaketime,
		on:     []string{"postgres", "mariadb"}, // MySQL does not answer behind libfaketime
		before: func(ctx context.Context, r *round) error { return r.server.fakeTime(ctx, "+0") },
		strike: func(ctx context.Context, r *round, rng *rand.Rand) error {
			steps := []string{"+5", "-5", "+3600", "-3600", "+0"}
			return again(ctx, rng, 800*time.Millisecond, func() error {
				step := steps[rng.IntN(len(steps))]
				r.blows.note("clock at " + step + " s")
				return r.server.setClock(step)
			})
		},
		heal: func(_ context.Context, r *round) error { return r.server.setClock("+0") },
	},
	{
		name: "clock-drift", what: "the server's clock 1.1 times as fast as the clients'", clock: true, alone: true, able: noFaketime,
		on:     []string{"postgres", "mariadb"}, // MySQL does not answer behind libfaketime
		before: func(ctx context.Context, r *round) error { return r.server.fakeTime(ctx, "+0 x1.1") },
		strike: func(ctx context.Context, r *round, _ *rand.Rand) error {
			r.blows.note("clock 1.1 times as fast")
			<-ctx.Done()
			return nil
		},
	},
}

// libraries has what libfaketime's package has; MySQL's must be inside its own Debian.
const libraries = "/usr/lib/*/faketime/libfaketimeMT.so.1"

func noFaketime() string {
	if found, _ := filepath.Glob(libraries); len(found) == 0 {
		return "libfaketime is not installed: apt-get install libfaketime"
	}
	return ""
}

func (s *server) clockFile() string { return s.folder + ".clock" }

// setClock says how far the server's clock is from the machine's. The file comes into being with
// its content.
func (s *server) setClock(offset string) error {
	path := s.outside(s.clockFile())
	if err := os.WriteFile(path+".new", []byte(offset+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// fakeTime starts the server again with a clock that can be set, and its clocks for waiting left
// alone. The round's end gives it the machine's clock back.
func (s *server) fakeTime(ctx context.Context, offset string) error {
	library, err := s.library()
	if err != nil {
		return err
	}
	if err := s.setClock(offset); err != nil {
		return err
	}
	s.variables = []string{
		"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + s.clockFile(), "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1",
	}
	return s.restart(ctx)
}

// library is libfaketime's, where the server finds it.
func (s *server) library() (string, error) {
	found, _ := filepath.Glob(libraries)
	if len(found) == 0 {
		return "", fmt.Errorf("%s: there is none", libraries)
	}
	if s.chroot() == "" {
		return found[0], nil
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return "", err
	}
	inside := s.folder + ".so"
	return inside, os.WriteFile(s.outside(inside), text, 0o755)
}

// realTime is the machine's clock again.
func (s *server) realTime(ctx context.Context) error {
	if len(s.variables) == 0 {
		return nil
	}
	s.variables = nil
	_ = os.Remove(s.outside(s.clockFile()))
	_ = os.Remove(s.outside(s.folder + ".so"))
	return s.restart(ctx)
}
