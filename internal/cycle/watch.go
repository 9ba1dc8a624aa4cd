package cycle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Watch knows the calls of one client that wait. Its exported fields are set before the first call.
type Watch struct {
	// Graph is nil if the store records no chains: then only this client's own locks are compared.
	Graph    lease.Graph
	Identity string
	Log      *slog.Logger
	// Mine returns what the client holds. It is asked when a call has waited for long.
	Mine func() []Held
	// Suspect may be nil.
	Suspect func(context.Context, lease.Suspicion)

	mu    sync.Mutex
	calls map[*Call]struct{}
	spent struct {
		chains []lease.Caller // whose records are still to be erased
		misses int            // to erase them, one after the other
	}
	off     bool          // the store records nothing
	writing chan struct{} // full while a record is under way
	loop    loop
	found   found // the loop's alone
}

// loop is the goroutine that works while there is a call, or a record to erase. Watch.mu guards
// what is not a channel.
type loop struct {
	sync.WaitGroup
	running, stopped bool
	kick, stop       chan struct{}
}

// found is what the loop remembers of former readings.
type found struct {
	seen   map[chain]time.Duration // of the last reading
	doubt  doubts
	noted  time.Time    // when a failure was last logged
	cycles atomic.Int64 // that calls were ended for
}

// Found counts them.
func (w *Watch) Found() int64 { return w.found.cycles.Load() }

// New returns a Watch without calls.
func New(w *Watch) *Watch {
	w.calls = make(map[*Call]struct{})
	w.loop.kick, w.writing = make(chan struct{}, 1), make(chan struct{}, 1)
	w.loop.stop = make(chan struct{})
	return w
}

// Stop ends the loop. Every call has ended.
func (w *Watch) Stop() {
	w.mu.Lock()
	if !w.loop.stopped {
		w.loop.stopped = true
		close(w.loop.stop)
	}
	w.mu.Unlock()
	w.loop.Wait()
}

// run goes round while calls wait.
func (w *Watch) run() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	at := time.Now().Add(w.sleep())
	next := time.NewTimer(time.Until(at))
	defer next.Stop()
	for {
		select {
		case <-w.loop.stop:
			w.forget(ctx)
			w.clear(ctx)
			return
		case <-w.loop.kick:
			if sooner := time.Now().Add(w.sleep()); sooner.Before(at) {
				at = sooner
			}
		case <-next.C:
			if w.round(ctx) {
				return
			}
			at = time.Now().Add(w.sleep())
		}
		next.Reset(time.Until(at))
	}
}

// sleep is how long nothing has to be done.
func (w *Watch) sleep() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := suspicious / 2
	for c := range w.calls {
		waited := time.Since(c.Since)
		if c.Holder != nil && w.recordsLocked() {
			d = min(d, max(every, patience-waited))
		}
		if waited < suspicious {
			d = min(d, max(every, suspicious-waited))
		}
	}
	if len(w.spent.chains) > 0 || len(w.calls) == 0 { // something is still to be erased
		d = min(d, every)
	}
	return d
}

// round records the calls that hold something, and reads what they lead to. It reports whether the
// loop has ended, because no call waits and no record is to be erased: the last call may have ended
// while the process was recorded.
func (w *Watch) round(ctx context.Context) (over bool) {
	due, long := w.due()
	w.clear(ctx)
	if len(due) > 0 && w.record(ctx, due) {
		w.read(ctx, due)
	}
	w.suspect(ctx, long)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loop.running = len(w.calls)+len(w.spent.chains) > 0 || w.recordedSelf()
	if !w.loop.running {
		w.found.seen = nil
	}
	return !w.loop.running
}

// records reports whether the store records chains.
func (w *Watch) records() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.recordsLocked()
}

func (w *Watch) recordsLocked() bool { return w.Graph != nil && !w.off }

// due returns the calls to record, and those that have waited suspiciously long.
func (w *Watch) due() (due, long []*Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.calls {
		waited := time.Since(c.Since)
		if w.recordsLocked() && c.Holder != nil && waited >= patience {
			expired, holds := c.record()
			w.spent.chains = append(w.spent.chains, expired...)
			if holds {
				due = append(due, c)
			}
		}
		if waited >= suspicious {
			long = append(long, c)
		}
	}
	return due, long
}

// clear erases records that no call extends any more. It is tried some times: they expire anyway,
// but then their rows wait for a sweep.
func (w *Watch) clear(ctx context.Context) {
	w.mu.Lock()
	chains := w.spent.chains
	w.spent.chains = nil
	w.mu.Unlock()
	if len(chains) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, adapter.Timeout)
	defer cancel()
	err := w.Graph.Erase(ctx, chains)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.spent.misses++; err == nil || errors.Is(err, lease.ErrUnsupported) || w.spent.misses == eraseTries {
		w.spent.misses = 0
		return
	}
	w.spent.chains = append(w.spent.chains, chains...)
}

// record writes the records of all these calls in one statement, except of those that have ended
// meanwhile.
func (w *Watch) record(ctx context.Context, due []*Call) bool {
	w.writing <- struct{}{}
	defer func() { <-w.writing }()
	var chains []lease.Caller
	var waiting []*Call // the others have ended, and may be erased at this moment
	w.mu.Lock()
	for _, c := range due {
		if _, waits := w.calls[c]; waits {
			c.chain.Waited = time.Since(c.Since)
			chains, waiting = append(chains, c.chain), append(waiting, c)
		}
	}
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, adapter.Timeout)
	defer cancel()
	at := time.Now()
	err := w.Graph.Record(ctx, lease.Party{Identity: w.Identity}, chains, life)
	for _, c := range waiting {
		c.sent(at, err == nil)
	}
	return !w.failed("record", err)
}

// read ends each call that is the last of a cycle.
func (w *Watch) read(ctx context.Context, due []*Call) {
	from := make([]lease.Owner, len(due))
	for i, c := range due {
		from[i] = c.chain.ID
	}
	ctx, cancel := context.WithTimeout(ctx, adapter.Timeout)
	defer cancel()
	asked := time.Now()
	edges, err := w.Graph.Edges(ctx, lease.Party{}, from, mostEdges)
	if w.failed("read", err) || time.Since(asked) > life {
		return // a process that was stopped has the answer of another time
	}
	var g graph
	g, w.found.seen = reading(edges, w.found.seen)
	for _, c := range due {
		if cycle := g.last(c.chain.ID); cycle != nil && !c.told {
			c.told = true
			w.found.cycles.Add(1)
			first := cycle[0]
			c.Broken <- &lease.DeadlockError{Key: first.Key, Token: first.Token, Cycle: links(cycle)}
		}
	}
	if len(edges) >= mostEdges || len(g.edges) >= mostChains {
		w.tooMany(len(edges), len(g.edges))
	}
}

// failed notes once a minute that waits are not compared, which costs no safety.
func (w *Watch) failed(what string, err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, lease.ErrUnsupported) {
		w.mu.Lock()
		w.off = true
		w.mu.Unlock()
	} else {
		w.note("rowlock: cannot look for deadlocks; waits go on as before", slog.String("step", what),
			slog.Any("error", err))
	}
	return true
}

// note logs once a minute, and reports whether it has.
func (w *Watch) note(text string, attrs ...slog.Attr) bool {
	if time.Since(w.found.noted) < time.Minute {
		return false
	}
	w.found.noted = time.Now()
	w.Log.LogAttrs(context.Background(), slog.LevelWarn, text, attrs...)
	return true
}
