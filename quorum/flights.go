package quorum

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// flights counts what runs on after its caller may have left.
type flights struct {
	mu    sync.Mutex
	n     int
	empty chan struct{} // closed when n is 0 again; nil if no caller waits for that
}

// Go runs f on a goroutine.
func (f *flights) Go(do func()) {
	f.mu.Lock()
	f.n++
	f.mu.Unlock()
	go func() {
		defer f.done()
		do()
	}()
}

func (f *flights) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 && f.empty != nil {
		close(f.empty)
		f.empty = nil
	}
}

// idle returns when nothing runs, or when ctx ends.
func (f *flights) idle(ctx context.Context) {
	f.mu.Lock()
	if f.n == 0 {
		f.mu.Unlock()
		return
	}
	if f.empty == nil {
		f.empty = make(chan struct{})
	}
	empty := f.empty
	f.mu.Unlock()
	select {
	case <-empty:
	case <-ctx.Done():
	}
}

// window is how long a request may still be carried out at a member that cannot say when it has
// ended. A member may be a bridge to etcd.
const window = adapter.Outlives

// Settle returns when no earlier request can be granted any more at a member, or when ctx ends. For
// a member that is no lease.Settler it waits 7 s.
func (s *Store) Settle(ctx context.Context) {
	s.calls.idle(ctx)
	var all sync.WaitGroup
	for _, m := range s.members {
		all.Go(func() { settle(ctx, m.settler) })
	}
	all.Wait()
}

func settle(ctx context.Context, of lease.Settler) {
	if of != nil {
		of.Settle(ctx)
		return
	}
	retry.Sleep(ctx, window)
}
