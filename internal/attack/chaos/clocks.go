//go:build linux

package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

var clockFaults = []*fault{
	{
		name: "clock-step", what: "the server's clock set by ±5 s or ±1 h while it runs", clock: true, alone: true, able: noClock,
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
		name: "clock-drift", what: "the server's clock 1.1 times as fast as the clients'", clock: true, alone: true, able: noClock,
		before: func(ctx context.Context, r *round) error { return r.server.fakeTime(ctx, "+0 x1.1") },
		strike: func(ctx context.Context, r *round, _ *rand.Rand) error {
			r.blows.note("clock 1.1 times as fast")
			<-ctx.Done()
			return nil
		},
	},
}

// ownClock is for MySQL, which does not answer behind libfaketime.
//
//go:embed clock/clock.c
var ownClock []byte

// libraries has what libfaketime's package has.
const libraries = "/usr/lib/*/faketime/libfaketimeMT.so.1"

func noClock() string {
	if _, err := exec.LookPath("cc"); err != nil {
		return "there is no C compiler, which MySQL's clock needs: apt-get install gcc libc6-dev"
	}
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

// library is one that fakes the clock, where the server finds it.
func (s *server) library() (string, error) {
	if s.name == "mysql" {
		return s.compile()
	}
	found, _ := filepath.Glob(libraries)
	if len(found) == 0 {
		return "", fmt.Errorf("%s: there is none", libraries)
	}
	return found[0], nil
}

// compile makes ownClock inside MySQL's own Debian, which is newer than this one.
func (s *server) compile() (string, error) {
	inside := s.folder + ".so"
	cmd := exec.Command("cc", "-shared", "-fPIC", "-O2", "-x", "c", "-o", s.outside(inside), "-", "-ldl")
	cmd.Stdin = bytes.NewReader(ownClock)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("MySQL's clock: %w: %s", err, out)
	}
	return inside, nil
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
