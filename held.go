package rowlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/cleanup"
	"github.com/rowlockdb/rowlock/internal/cycle"
	"github.com/rowlockdb/rowlock/internal/observe"
	"github.com/rowlockdb/rowlock/internal/queue"
	"github.com/rowlockdb/rowlock/internal/seam"
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
	// ctx is that of the first handle. It ends with that or with the hold, and knows it: see chain.
	ctx    chain
	cancel context.CancelCauseFunc
	since  time.Time
	taken  []uintptr // the calls that took it, with Config.Debug
	terms
	state
}

// terms are those on which a key was granted.
type terms struct {
	// minHold counts from the grant, which may have come just before the answer: late after since.
	// Times would make every lock larger.
	minHold, late time.Duration
	maxIdle       time.Duration
	space         *tenant.Space
	note          string // as it is stored
	slot          bool   // of a limit
	slotOf        int64  // the generation of its limit, or 0
	doubtful      bool   // a copy of the granting request may still be under way at the server
}

// keeper is what locks need of their client: where they are kept alive, and where they are given
// up.
type keeper struct {
	cfg     Config
	store   *seam.Store
	tables  any // compares equal for clients on the same tables
	dog     *watchdog.Watchdog
	calls   *cleanup.Calls
	orphans *cleanup.Cleaner
	queue   queue.Queue
	returns queue.Releaser
	room    atomic.Pointer[cycle.Room] // for what was waited for in a cycle; nil before
	reports
	registry
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

// registry has the locks of a client.
type registry struct {
	mu     sync.Mutex
	holds  map[*hold]struct{} // whose leases were not given away
	closed chan struct{}      // closed by Close; ends every wait
}

// counts are the events of a client's locks.
type counts struct {
	acquired, released, lost, unlockFailed, leaks atomic.Int64
	renewals, renewed, renewFailed                atomic.Int64
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

// newHold makes a hold of grant i.
func newHold(ctx context.Context, k *keeper, g queue.Grants, i int, r *request) *hold {
	h := &hold{k: k, since: g.Sent, state: state{handles: 1}}
	if k.cfg.Hooks.Acquired != nil {
		h.endHook = new(func())
	}
	answer := &g.Each[i].Answer
	h.terms = terms{
		maxIdle: r.maxIdle, space: r.space, note: r.Want.Note, doubtful: answer.Doubtful,
		slot: r.Within != nil, slotOf: answer.Generation,
	}
	if r.minHold > 0 {
		h.minHold, h.late = r.minHold, time.Since(g.Sent)
	}
	if k.cfg.Debug {
		h.taken = make([]uintptr, 32)
		h.taken = h.taken[:runtime.Callers(2, h.taken)]
	}
	h.ctx = chain{held: h, up: chainOf(ctx)}
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx) // the lock must not end with the call that happened to get it
	}
	h.ctx.Context, h.cancel = context.WithCancelCause(ctx)
	h.lease = watchdog.Held{
		Lease: g.Lease(i), TTL: r.Want.TTL, Margin: r.margin, Every: r.every, End: h.ended,
		Context: &h.ctx, Quiet: r.Want.Quiet,
	}
	if r.maxHold > 0 {
		h.lease.Until = g.Sent.Add(r.maxHold)
	}
	return h
}

// id is the lease, which Downgrade changes.
func (h *hold) id() lease.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease.Lease
}

// rest is how long the key must still stay locked because of MinHold.
func (h *hold) rest() time.Duration { return h.minHold + h.late - time.Since(h.since) }

// differs is why a Reentrant call that has named options cannot share this lock, or nil.
func (h *hold) differs(r *request) error {
	if r.given == 0 {
		return nil
	}
	maxHold := time.Duration(0)
	if !h.lease.Until.IsZero() {
		maxHold = h.lease.Until.Sub(h.since)
	}
	for _, o := range [...]struct {
		given       given
		name        string
		first, this time.Duration
	}{
		{givenTTL, "TTL", h.lease.TTL, r.Want.TTL},
		{givenNoRenew, "the RenewEvery of NoRenew", h.lease.Every, r.every},
		{givenMaxHold, "MaxHold", maxHold, r.maxHold},
		{givenMinHold, "MinHold", h.minHold, r.minHold},
		{givenMaxIdle, "MaxIdle", h.maxIdle, r.maxIdle},
	} {
		if r.given&o.given != 0 && o.first != o.this {
			return fmt.Errorf("%w: %s (%s) of a Reentrant call differs from that of the lock on %q "+
				"that its ctx holds (%s): give the same, or leave it out",
				lease.ErrConfig, o.name, orNone(o.this), h.lease.Key, orNone(o.first))
		}
	}
	return nil
}

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

// ended is called by the watchdog when the lease is over.
func (h *hold) ended(cause error) {
	if errors.Is(cause, ErrUnlocked) {
		h.k.queue.Wake(h.lease.Key) // the row is free, or another owner's
		h.left()
		return
	}
	h.over(cause)
}

// left ends a lock whose row has gone after UnlockTx. That is the release that was wanted, unless
// the transaction was rolled back and an operator has taken the lock away since. Only the record of
// that tells, and the loop that calls this must not wait for it.
func (h *hold) left() {
	if _, err := h.k.store.Forces(); err != nil {
		h.over(ErrUnlocked)
		return
	}
	if !h.k.calls.Enter() {
		return // Close ends it
	}
	go func() {
		defer h.k.calls.Leave()
		within := min(seam.Timeout, time.Until(h.k.dog.Deadline(&h.lease)))
		ctx, cancel := context.WithTimeout(&h.ctx, within)
		defer cancel()
		cause := ErrUnlocked
		if h.k.returns.Forced(ctx, h.id()) {
			cause = ErrLost
		}
		h.over(cause)
	}()
}

// over ends a lock whose lease is over.
func (h *hold) over(cause error) {
	if !errors.Is(cause, ErrUnlocked) {
		if h.end(cause, onEnd) {
			h.wasLost(cause)
		}
		return
	}
	if !h.end(cause, onTxRelease) {
		return
	}
	h.k.remove(h)
	h.k.queue.Wake(h.lease.Key) // the row is free
	if h.doubtful {             // a copy of the granting request may come after the transaction
		h.k.orphans.AddLeases(h.id())
	}
	h.released(context.Context(nil)) // no caller: the end of a transaction is noticed
}

// wasLost is called after an end that the holder did not want.
func (h *hold) wasLost(cause error) {
	h.k.queue.Wake(h.lease.Key) // the row may be free, or about to be
	h.lost(cause)
}

// orNone is how an error shows a time of which 0 means none.
func orNone(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	return d.String()
}

// progress notes that the holder works. It reports false if the lock is over, and ends it if it has
// been idle for too long: in a process that was stopped, this may run before the watchdog does.
func (h *hold) progress() bool {
	if h.why() != nil {
		return false
	}
	if h.lease.Progress() {
		return true
	}
	cause := ErrIdle
	if !time.Now().Before(h.k.dog.Deadline(&h.lease)) {
		cause = ErrLost
	}
	h.ended(cause)
	return false
}

// Every lock is told of once as acquired and, after that, once as released or lost: end has one
// caller that it tells that the lock has ended.

// acquired tells of a new lock, and then of its end if that has come meanwhile, even if the hook
// panics.
func (h *hold) acquired(ctx context.Context, began time.Time, handedOver bool) {
	if h.lease.Quiet {
		return
	}
	h.k.counts.acquired.Add(1)
	h.k.events.Nudge()
	now := time.Now()
	waited := now.Sub(began)
	if h.k.trace != nil {
		h.k.trace.Granted(&h.lease.Lease, h.note, handedOver, now, waited)
	}
	if h.k.cfg.Hooks.Acquired == nil {
		return
	}
	defer func() {
		h.mu.Lock()
		ended := *h.endHook
		h.endHook = nil
		h.mu.Unlock()
		if ended != nil {
			ended()
		}
	}()
	h.k.cfg.Hooks.Acquired(ctx, h.lease.Key, h.lease.Token, waited)
}

// released tells of an end that the holder or Close wanted. For caller see told.
func (h *hold) released(caller context.Context) {
	if h.lease.Quiet {
		return
	}
	h.k.counts.released.Add(1)
	h.k.events.Nudge()
	if h.k.cfg.Hooks.Released == nil && h.k.trace == nil {
		return
	}
	now := time.Now()
	held := now.Sub(h.since)
	l := h.id()
	h.k.trace.Released(&l, h.note, now, held)
	if ctx, hooks := h.told(caller); hooks.Released != nil {
		h.afterAcquired(func() { hooks.Released(ctx, h.lease.Key, h.lease.Token, held) })
	}
}

// lost tells of an end that the holder did not want.
func (h *hold) lost(cause error) {
	if h.lease.Quiet {
		return
	}
	h.k.counts.lost.Add(1)
	l := h.id()
	h.k.events.Lost(l, lease.StoredNote(h.k.cfg.Identity, ""))
	h.k.trace.Lost(&l, h.note, time.Since(h.since), cause)
	h.k.cfg.Logger.LogAttrs(&h.ctx, slog.LevelWarn, "rowlock: lock ended",
		slog.String("key", h.lease.Key), slog.Int64("token", h.lease.Token), slog.Any("cause", cause))
	h.afterAcquired(func() {
		if lost := h.k.cfg.Hooks.Lost; lost != nil {
			lost(&h.ctx, h.lease.Key, h.lease.Token, cause)
		}
		h.k.reasons.Ask(l) // its hook comes after Lost
	})
}

// told is the ctx with which an end is told, and to which hooks: the caller's, or without a caller
// the lock's own, and hooks that hold up no loop and no Close.
func (h *hold) told(caller context.Context) (context.Context, *Hooks) {
	if caller == nil {
		return &h.ctx, &h.k.ends
	}
	return caller, &h.k.cfg.Hooks
}

// afterAcquired calls a hook now, or leaves it to acquired: a gauge would fall below 0, and a trace
// end before it begins.
func (h *hold) afterAcquired(hook func()) {
	h.mu.Lock()
	waits := h.endHook
	if waits != nil {
		*waits = hook
	}
	h.mu.Unlock()
	if waits == nil {
		hook()
	}
}

// watch registers a lock that was just granted and keeps it alive, unless the client was closed
// meanwhile or the lease cannot be trusted any more: the watchdog says why.
func (k *keeper) watch(h *hold, sent time.Time) error {
	k.mu.Lock()
	if k.isClosed() {
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

func (k *keeper) isClosed() bool {
	select {
	case <-k.closed:
		return true
	default:
		return false
	}
}

// shut ends every wait and returns the locks whose leases are to be given away. It reports false if
// that was done before.
func (k *keeper) shut() (held []*hold, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.isClosed() {
		return nil, false
	}
	close(k.closed)
	for h := range k.holds {
		held = append(held, h)
	}
	return held, true
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
			held = append(held, cycle.Held{Lease: h.id(), Since: h.since, Taken: h.where})
		}
	}
	return held
}
