package rowlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// end ends the lock by e. It reports false if the lock was over already.
func (h *hold) end(cause error, e event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.endWith(cause, e)
}

// endWith is end for a caller that has the mutex. No renewal is sent after it, and the contexts of
// all handles end. The step comes first, so that a call which finds the lock over may give the
// lease away.
func (h *hold) endWith(cause error, e event) bool {
	if h.step(e) == nowhere {
		return false
	}
	h.cause = cause
	h.k.dog.Drop(&h.lease)
	if h.space != nil { // before a context ends, whose caller may lock another key at once
		h.space.Free(1)
	}
	if h.ctx.made.Load() {
		h.ctx.cancel(cause)
	}
	for n := range h.nested {
		n.cancel(cause)
	}
	return true
}

// Context and End are called by the watchdog, End when the lease is over.
func (h *hold) Context() context.Context { return &h.ctx }

func (h *hold) End(cause error) {
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
		within := min(adapter.Timeout, time.Until(h.k.dog.Deadline(&h.lease)))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(&h.ctx), within)
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
	if h.uncertain {            // a copy of the granting request may come after the transaction
		h.k.orphans.AddLeases(h.id())
	}
	h.released(context.Context(nil)) // no caller: the end of a transaction is noticed
}

// wasLost is called after an end that the holder did not want.
func (h *hold) wasLost(cause error) {
	h.k.queue.Wake(h.lease.Key) // the row may be free, or about to be
	h.lost(cause)
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
	h.End(cause)
	return false
}

// afterwards answers an Unlock that came too late, or that another one was faster than.
func (h *hold) afterwards() error {
	cause := h.why()
	if cause != nil && !errors.Is(cause, ErrUnlocked) {
		return fmt.Errorf("%w: %q", cause, h.lease.Key)
	}
	if cause != nil && h.wasLeaving() {
		return nil // UnlockTx did it
	}
	return fmt.Errorf("%w: %q was released already", ErrUnlocked, h.lease.Key)
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
	held := now.Sub(h.since())
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
	h.k.trace.Lost(&l, h.note, time.Since(h.since()), cause)
	h.k.cfg.Logger.LogAttrs(&h.ctx, slog.LevelWarn, "rowlock: lock ended",
		slog.String("key", h.lease.Key), slog.Any("token", h.lease.Token), slog.Any("cause", cause))
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

// leaked tells of a lock that was forgotten.
func (h *hold) leaked() {
	age := time.Since(h.since())
	h.k.counts.leaks.Add(1)
	h.k.cfg.Logger.LogAttrs(&h.ctx, slog.LevelWarn,
		"rowlock: a lock was forgotten: its handle is garbage, and Unlock was not called; releasing it",
		slog.String("key", h.lease.Key), slog.Any("token", h.lease.Token),
		slog.Duration("age", age), slog.String("taken", h.where()))
	if leaked := h.k.cfg.Hooks.Leaked; leaked != nil {
		leaked(&h.ctx, h.lease.Key, h.lease.Token, age, h.where())
	}
}

// unlockFailed tells of a row that may still be locked.
func (h *hold) unlockFailed(caller context.Context, err error) {
	if h.lease.Quiet {
		return
	}
	h.k.counts.unlockFailed.Add(1)
	if ctx, hooks := h.told(caller); hooks.UnlockFailed != nil {
		hooks.UnlockFailed(ctx, h.lease.Key, h.lease.Token, err)
	}
}
