package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/rowlockdb/rowlock/internal/house/figures"
)

// firstWrite is how long a newcomer may wait on a machine that does nothing else.
const firstWrite = 60 * time.Second

// first is what a newcomer waits for: from go get to a fenced write of the README's program, with
// an empty module cache and an empty build cache. The proxy's and the machine's speed are in it.
func (r *release) first(ctx context.Context, folder string) error {
	server := os.Getenv("ROWLOCK_TEST_POSTGRES")
	if server == "" {
		fmt.Println("SKIPPED, NO FENCED WRITE: ROWLOCK_TEST_POSTGRES names no server")
		return nil
	}
	program, err := os.ReadFile(filepath.Join(r.tree, "examples", "postgres", "main.go"))
	if err != nil {
		return err
	}
	if err := application(folder, string(program)); err != nil {
		return err
	}
	cold := *r
	cold.cache = filepath.Join(folder, "modules")
	began := time.Now()
	err = step("from go get to the first fenced write on PostgreSQL, all caches empty", func() error {
		return cold.parts(ctx, folder, server)
	})
	if err != nil {
		return err
	}
	return r.inTime(time.Since(began))
}

// parts runs what a newcomer would by go get and go run, and says what of it took how long. go list
// has the sources downloaded before they are compiled.
func (r *release) parts(ctx context.Context, folder, server string) error {
	var said string
	for _, part := range []struct {
		what     string
		commands [][]string
	}{
		{"download", [][]string{
			{"go", "get", figures.Module + "@" + r.version}, {"go", "list", "-deps", "."},
		}},
		{"compile", [][]string{{"go", "build", "-o", "first", "."}}},
		{"run", [][]string{{"./first"}}},
	} {
		err := step("  "+part.what, func() (err error) {
			for _, c := range part.commands {
				args := append([]string{"GOCACHE=" + filepath.Join(folder, "build"), "DATABASE_URL=" + server}, c...)
				if said, err = r.command(ctx, folder, "env", args...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if !strings.Contains(said, "taken over") {
		return fmt.Errorf("it says %q", said)
	}
	return nil
}

// inTime fails if it took too long. What else the machine did meanwhile is not rowlock's fault.
func (r *release) inTime(took time.Duration) error {
	switch {
	case took <= firstWrite:
		return nil
	case r.busy > float64(runtime.NumCPU())/2:
		fmt.Printf("NOT HELD to %v: the machine was busy before (load %.1f)\n", firstWrite, r.busy)
		return nil
	}
	return fmt.Errorf("the first fenced write took %.0f s, and may take %v on an idle machine", took.Seconds(), firstWrite)
}

// load is how many processes wanted a processor during the last minute: 0 where that is not known.
func load() (busy float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		_, _ = fmt.Sscan(string(text), &busy)
	}
	return busy
}
