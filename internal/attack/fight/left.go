//go:build linux

package fight

import (
	"context"
	"runtime"
	"time"

	"github.com/rowlockdb/rowlock/internal/attack/history"
)

// settleFor is how long goroutines of closed clients may take to end.
const settleFor = 10 * time.Second

// leaks records how many goroutines there are more than before the worker opened its clients, and
// what they do.
func (w *worker) leaks(before int) {
	end := Now() + int64(settleFor)
	for runtime.NumGoroutine() > before && Now() < end {
		Sleep(context.Background(), look)
	}
	e := history.Event{Kind: history.Left, Process: w.name, Sent: Now(), Told: Now(), Value: int64(runtime.NumGoroutine() - before)}
	if e.Value > 0 {
		stacks := make([]byte, 1<<16)
		e.Err = string(stacks[:runtime.Stack(stacks, true)])
	}
	w.record.Add(e)
}
