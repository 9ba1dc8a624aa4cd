package rowlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/internal/observe"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/internal/tell"
	"github.com/rowlockdb/rowlock/internal/tenant"
	"github.com/rowlockdb/rowlock/internal/trace"
	"github.com/rowlockdb/rowlock/lease"
	"github.com/rowlockdb/rowlock/watchdog"
)

// hold is a key that this client holds: what the watchdog keeps alive. No hold refers to its
// handles, so that a handle that the caller has forgotten becomes garbage.
type hold struct {
	k     *keeper
	lease watchdog.Held
	ctx   ownCtx
	asked time.Duration // after the keeper began: a time.Time would make every lock larger
	*extras
	state
}

// extras are what few locks have, and are not made for the others.
type extras struct {
	// minHold counts from the grant, which may have come just before the answer: late after since.
	minHold, late time.Duration
	maxIdle       time.Duration
	space         *tenant.Space // of its namespace
	note          string        // as it is stored, with Config.Trace
	taken         []uintptr     // the calls that took it, with Config.Debug
	slotOf        int64         // the generation of its limit, or 0
	slot          bool          // of a limit
	uncertain     bool          // a copy of the granting request may still be under way at the server
}

var noExtras extras // of the others; it is not changed

// id is the lease, which Downgrade changes.
func (h *hold) id() lease.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease.Lease
}

// since is when the request was sent that was granted.
func (h *hold) since() time.Time { return h.k.began.Add(h.asked) }

// rest is how long the key must still stay locked because of MinHold.
func (h *hold) rest() time.Duration { return h.minHold + h.late - time.Since(h.since()) }

// wasLeaving reports whether a transaction of the caller's may have released the lock.
func (h *hold) wasLeaving() bool {
	_, left := h.k.dog.InTx(&h.lease)
	return left
}

// where returns the calls that took the lock, one in a line, if Config.Debug was set.
func (h *hold) where() string {
	var b strings.Builder
	frames := runtime.CallersFrames(h.taken)
	for len(h.taken) > 0 {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, "github.com/rowlockdb/rowlock.(*Client).") {
			fmt.Fprintf(&b, "%s (%s:%d)\n", f.Function, f.File, f.Line)
		}
		if !more {
			break
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// keeper is what locks need of their client: where they are kept alive, and where they are given
// up.
type keeper struct {
	began   time.Time
	cfg     Config
	store   *adapter.Store
	tables  any // compares equal for clients on the same tables
	tx      transactions
	dog     *watchdog.Watchdog
	calls   *cleanup.Calls
	orphans *cleanup.Cleaner
	queue   queue.Queue
	returns queue.Releaser
	room    atomic.Pointer[cycle.Room] // for what was waited for in a cycle; nil before
	reports
	registry
}

// transactions are those that DoTx begins.
type transactions struct {
	adapter.Transactor            // nil: the store is in no database
	pool               adapter.DB // that Open got; nil after New
}

// usable reports whether there is a pool.
func (t *transactions) usable() error {
	if t.pool != nil {
		return nil
	}
	return fmt.Errorf("%w: DoTx needs the pool that Open gets, and this client was made by New: "+
		"say where transactions begin (rowlock.DoTxOn), or use Do and Fence", lease.ErrUnsupported)
}

// registry has the locks of a client.
type registry struct {
	mu     sync.Mutex
	holds  map[*hold]struct{} // whose leases were not given away
	closed chan struct{}      // closed by Close; ends every wait
}

// reports are what is told of locks.
type reports struct {
	hooks   *tell.Queue // calls those that no caller waits for
	ends    Hooks       // of locks whose end no caller waits for
	counts  counts
	events  *observe.Poller
	trace   *trace.Recorder // nil: off
	reasons *cleanup.Reasons
}

// counts are the events of a client's locks.
type counts struct {
	acquired, released, lost, unlockFailed, leaks atomic.Int64
	renewals, renewed, renewFailed, failedInARow  atomic.Int64
}

// locks reads three counters as of one moment, or else of moments that are as close as can be.
func (n *counts) locks() (acquired, released, lost int64) {
	for range 100 {
		released, lost = n.released.Load(), n.lost.Load()
		acquired = n.acquired.Load()
		if n.released.Load() == released && n.lost.Load() == lost {
			break
		}
	}
	return acquired, released, lost
}

// chain is a context that knows which locks the calls above it hold. It is a list, from the lock
// that was taken last to the first.
type chain struct {
	context.Context
	held *hold
	up   *chain
}

type chainKey struct{}

// Value returns the chain itself by the key of this package.
func (c *chain) Value(key any) any {
	if key == (chainKey{}) {
		return c
	}
	return c.Context.Value(key)
}

func chainOf(ctx context.Context) *chain {
	c, _ := ctx.Value(chainKey{}).(*chain)
	return c
}

// in yields the holds in these tables that are not over, the last one that was taken first.
func (c *chain) in(tables any) iter.Seq[*hold] {
	return func(yield func(*hold) bool) {
		for at := c; at != nil; at = at.up {
			h := at.held
			if h.k.tables == tables && h.why() == nil && !yield(h) {
				return
			}
		}
	}
}

// ownCtx is the context of a hold's first handle. It ends with that or with the hold, and knows the
// hold: see chain. What ends it is made when a caller first asks, because without it a lock is a
// quarter smaller. Until then the chain has the ctx of the call that got the lock.
type ownCtx struct {
	chain
	cancel context.CancelCauseFunc
	made   atomic.Bool // the context is the one that cancel ends
}

// ending returns the context that ends.
func (c *ownCtx) ending() context.Context {
	if !c.made.Load() {
		c.held.mu.Lock()
		c.make()
		c.held.mu.Unlock()
	}
	return c.Context
}

// make is for callers that have the hold's mutex. A lock must not end with the call that happened
// to get it.
func (c *ownCtx) make() {
	if c.made.Load() {
		return
	}
	c.Context, c.cancel = context.WithCancelCause(context.WithoutCancel(c.Context))
	if cause := c.held.cause; cause != nil {
		c.cancel(cause)
	}
	c.made.Store(true)
}

func (c *ownCtx) Deadline() (time.Time, bool) { return time.Time{}, false }
func (c *ownCtx) Done() <-chan struct{}       { return c.ending().Done() }
func (c *ownCtx) Err() error                  { return c.ending().Err() }

func (c *ownCtx) Value(key any) any {
	if key == (chainKey{}) {
		return &c.chain
	}
	return c.ending().Value(key)
}

// find returns the hold of key in these tables, or nil.
func (c *chain) find(tables any, key string) *hold {
	for h := range c.in(tables) {
		if h.lease.Key == key {
			return h
		}
	}
	return nil
}

// lockAnswered locks the mutex at a moment when no Downgrade is under way. After an error it has
// not locked it.
func (h *hold) lockAnswered(ctx context.Context) error {
	for {
		h.mu.Lock()
		answered := h.answered
		if answered == nil {
			return nil
		}
		h.mu.Unlock()
		select {
		case <-answered:
		case <-ctx.Done():
			return fmt.Errorf("rowlock: %q: its Downgrade is under way: %w", h.lease.Key, ctx.Err())
		}
	}
}

// changes reports whether the lease is another than it was, or is about to be.
func (h *hold) changes(was lease.Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered != nil || h.lease.Lease != was
}

// watch registers a lock that was just granted and keeps it alive, unless the client was closed
// meanwhile or the lease cannot be trusted any more: the watchdog says why.
func (k *keeper) watch(h *hold, sent time.Time) error {
	k.mu.Lock()
	if queue.IsClosed(k.closed) {
		k.mu.Unlock()
		return fmt.Errorf("%w: lock %q", lease.ErrClosed, h.lease.Key)
	}
	k.holds[h] = struct{}{}
	k.mu.Unlock()
	return k.dog.Keep(&h.lease, sent)
}

func (k *keeper) remove(h *hold) {
	k.mu.Lock()
	delete(k.holds, h)
	k.mu.Unlock()
}

// shut ends every wait and returns the locks whose leases are to be given away. It reports false if
// that was done before.
func (k *keeper) shut() (held []*hold, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if queue.IsClosed(k.closed) {
		return nil, false
	}
	close(k.closed)
	for h := range k.holds {
		held = append(held, h)
	}
	return held, true
}

// demanded notes which of the locks that a call holds the others of a cycle wait for, if the call
// was ended for them.
func (k *keeper) demanded(by cycle.Holder, err error) {
	var d *lease.DeadlockError
	a, ok := by.(above)
	if !ok || k.cfg.Fair || !errors.As(err, &d) || len(d.Cycle) == 0 {
		return
	}
	last := d.Cycle[len(d.Cycle)-1]
	for _, h := range a.all() {
		if h.lease.Key == last.Key && h.lease.Token == last.Token {
			h.mu.Lock()
			h.demanded = true
			h.mu.Unlock()
		}
	}
}

// mine returns what the client holds, but not the locks that are its own.
func (k *keeper) mine() (held []cycle.Held) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for h := range k.holds {
		if !h.lease.Quiet && h.why() == nil {
			held = append(held, cycle.Held{Lease: h.id(), Since: h.since(), Taken: h.where})
		}
	}
	return held
}

// above is what a call holds while it waits: the locks of its context, and what a fair LockAll has
// got so far.
type above struct {
	*chain
	tables any
	got    []*hold
}

// Held returns the leases of the same tables.
func (a above) Held() (leases []lease.Lease) {
	for _, h := range a.all() {
		leases = append(leases, h.id())
	}
	return leases
}

func (a above) all() []*hold {
	return slices.AppendSeq(slices.Clone(a.got), a.in(a.tables))
}
