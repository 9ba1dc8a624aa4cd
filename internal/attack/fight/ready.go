//go:build linux

package fight

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A run starts when every worker has opened its clients, which takes a busy machine many seconds.
// Workers and the coordinator tell each other by files, which a worker that is started again finds
// as they are.

// startFile has the start, on the monotonic clock.
func startFile(folder string) string { return filepath.Join(folder, "start") }

// readySuffix is added to the name of a worker's record.
const readySuffix = ".ready"

// look is how often a file is looked for.
const look = 20 * time.Millisecond

// ready says that the worker is, and waits for the start.
func (w *worker) ready() error {
	if err := os.WriteFile(w.Record+readySuffix, nil, 0o644); err != nil {
		return err
	}
	path := startFile(filepath.Dir(w.Record))
	for {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err == nil {
			start, err := strconv.ParseInt(string(text), 10, 64)
			w.Plan.At(start)
			return err
		}
		Sleep(context.Background(), look)
	}
}

// openFor is how long workers may take to open their clients.
const openFor = 90 * time.Second

// Begin waits for all workers, and sets the start. The file comes into being with its content.
func (t *Team) Begin(ctx context.Context, plan *Plan) (start int64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, openFor, fmt.Errorf("the workers have not opened their clients in %s", openFor))
	defer cancel()
	for _, path := range t.Present() {
		for {
			_, err := os.Stat(path + readySuffix)
			if err == nil {
				break
			}
			if err := t.trouble(); err != nil {
				return 0, err
			}
			if Sleep(ctx, look); ctx.Err() != nil {
				return 0, context.Cause(ctx)
			}
		}
	}
	start = Now() + int64(100*time.Millisecond)
	plan.At(start)
	t.end = plan.Phases[len(plan.Phases)-1].To
	path := startFile(t.folder)
	if err := os.WriteFile(path+".new", []byte(strconv.FormatInt(start, 10)), 0o644); err != nil {
		return 0, err
	}
	return start, os.Rename(path+".new", path)
}
