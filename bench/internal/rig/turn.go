package rig

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Turn has goroutines do something again and again for so long, and returns how often a second they did. The first error ends it.
func Turn(ctx context.Context, goroutines int, d time.Duration, do func(ctx context.Context, worker, n int) error) (float64, error) {
	runtime.GC() // nobody pays for another's garbage
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var done atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for worker := range goroutines {
		wg.Go(func() {
			n := 0
			for ; time.Now().Before(began.Add(d)) && ctx.Err() == nil; n++ {
				if err := do(ctx, worker, n); err != nil {
					stop(err)
					break
				}
			}
			done.Add(int64(n))
		})
	}
	wg.Wait()
	return float64(done.Load()) / time.Since(began).Seconds(), context.Cause(ctx)
}
