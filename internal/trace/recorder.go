// Package trace writes what becomes of a client's locks into the store's trace, off the path of the
// locks: what happens is kept in memory, and one goroutine writes it in batches. What it cannot
// write in time it drops and counts. It never makes a lock wait.
package trace

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

const (
	// every is how long an event waits for others to be written with, and so how much a process that
	// is killed takes with it.
	every = time.Second
	// batch is how many events one statement writes.
	batch = 2000
	// patience bounds one statement.
	patience = 5 * time.Second
	// lastWrite bounds what Stop sends.
	lastWrite = 2 * time.Second
	// After a failure the pause doubles from the first to the last.
	firstPause, lastPause = time.Second, time.Minute
)

// Config configures a Recorder.
type Config struct {
	Store lease.Tracer
	// Kinds are what is recorded.
	Kinds Kinds
	// LongWait is how long a wait is long.
	LongWait time.Duration
	// Buffer is how many events are kept in memory at most.
	Buffer int
	// Identity is that of the client.
	Identity string
	Log      *slog.Logger
}

// Kinds is a set of kinds of events.
type Kinds uint64

// Of returns the set of these kinds.
func Of(kinds ...lease.EventKind) (set Kinds) {
	for _, k := range kinds {
		set |= 1 << k
	}
	return set
}

// Has reports whether the set has k.
func (s Kinds) Has(k lease.EventKind) bool { return s&(1<<k) != 0 }

// Recorder records events until Stop. The methods of a nil Recorder do nothing.
type Recorder struct {
	cfg  Config
	wake chan struct{} // there is a first event, or a full batch
	stop chan struct{}
	done chan struct{}
	base context.Context // of what the goroutine writes
	end  context.CancelFunc

	buffer
	written, dropped atomic.Int64

	// The writer's alone:
	told   int64 // dropped, as the trace says
	failed bool  // and logged
	pause  time.Duration
}

// buffer has the events that are to be written.
type buffer struct {
	mu     sync.Mutex
	events []lease.TraceEvent // oldest first
	taken  int                // that the writer has, and has not written
	next   int64              // ID
	over   bool
	spare  []lease.TraceEvent // the memory of events; the writer's alone
}

// Start returns a Recorder whose goroutine runs until Stop.
func Start(cfg Config) *Recorder {
	r := &Recorder{
		cfg: cfg, wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
		buffer: buffer{next: rand.Int64N(1 << 50)},
	}
	r.base, r.end = context.WithCancel(context.Background())
	go r.run()
	return r
}

// Counts returns how many events were written and dropped.
func (r *Recorder) Counts() (written, dropped int64) {
	if r == nil {
		return 0, 0
	}
	return r.written.Load(), r.dropped.Load()
}

// Has reports whether events of this kind are recorded.
func (r *Recorder) Has(k lease.EventKind) bool { return r != nil && r.cfg.Kinds.Has(k) }

// Add records an event, unless its kind is left out. It costs a mutex and a copy.
func (r *Recorder) Add(e lease.TraceEvent) {
	if !r.Has(e.Kind) {
		return
	}
	r.mu.Lock()
	r.next++
	e.ID = r.next
	if r.over || len(r.events)+r.taken >= r.cfg.Buffer {
		r.mu.Unlock()
		r.dropped.Add(1)
		return
	}
	r.events = append(r.events, e)
	n := len(r.events)
	r.mu.Unlock()
	if n == 1 || n == batch {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// Stop writes what is recorded, until ctx ends, and returns when the goroutine has ended. What it
// could not write is dropped.
func (r *Recorder) Stop(ctx context.Context) {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.join(ctx)
	ctx, cancel := context.WithTimeout(ctx, lastWrite)
	defer cancel()
	events := r.take(nil)
	left := r.flush(ctx, events)
	r.dropped.Add(int64(len(left)))
	if len(events) > 0 && len(left) == 0 && r.dropped.Load() > r.told {
		_, _ = r.write(ctx, nil)
	}
	if n := r.dropped.Load() - r.told; n > 0 {
		r.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "rowlock: events that the trace does not have",
			slog.Int64("events", n))
	}
}

// join ends the goroutine. A statement that is under way has a second, and no longer than ctx.
func (r *Recorder) join(ctx context.Context) {
	close(r.stop)
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	defer context.AfterFunc(short, r.end)()
	<-r.done
	r.end()
}
