package paxosbridge

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// reports says what became of a move: to the log, the hooks, the caller, and all that wait for the
// key.
type reports struct {
	cfg    *Config
	stores []lease.Notifier

	mu        sync.Mutex
	listeners map[*listener]struct{}
}

func newReports(cfg *Config, stores ...lease.Notifier) *reports {
	return &reports{cfg: cfg, stores: stores, listeners: make(map[*listener]struct{})}
}

// listener is a call of Listen in this process, which hears of a move at once, because not every
// store can notify. Or it is a client that traces the moves of this process.
type listener struct {
	heard func(key string)
	moved func(key string, placement int, why string) // may be nil
}

func (r *reports) add(one *listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listeners[one] = struct{}{}
}

func (r *reports) remove(one *listener) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.listeners, one)
}

// wake notifies the listeners of this process.
func (r *reports) wake(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.listeners {
		one.heard(key)
	}
}

// announce wakes the waiters of all processes.
func (r *reports) announce(ctx context.Context, key string) {
	r.wake(key)
	for _, n := range r.stores {
		_ = n.Announce(ctx, []string{key}) // a hint: a waiter that misses it polls
	}
}

// moved reports a move that is complete.
func (r *reports) moved(ctx context.Context, key string, placement int, epoch int64, why string) {
	r.cfg.Logger.InfoContext(
		ctx, "rowlock: bridge: moved", "key", key, "placement", placement, "epoch", epoch, "why", why,
	)
	if h := r.cfg.Hooks.Moved; h != nil {
		h(key, placement, epoch, why)
	}
	r.traced(key, placement, why)
	r.announce(ctx, key)
}

// traced tells of a move.
func (r *reports) traced(key string, placement int, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for one := range r.listeners {
		if one.moved != nil {
			one.moved(key, placement, why)
		}
	}
}

// unfinished reports a move whose second step failed: its waiters wake, and the first of them
// finishes it.
func (r *reports) unfinished(key, state string, err error) error {
	r.wake(key)
	return fmt.Errorf("rowlock: bridge: %q %s; the next request for it completes the move: %w", key, state, err)
}

// unknownStep is an error of the step that cannot be undone, which the store may have carried out.
type unknownStep struct{ error }

func (u unknownStep) Unwrap() error { return u.error }

// stayed reports a move that failed at or before the step that cannot be undone.
func (r *reports) stayed(key, where string, err error) error {
	if errors.As(err, new(unknownStep)) {
		return r.unfinished(key, "may have left "+where+" (outcome unknown)", err)
	}
	if h := r.cfg.Hooks.Stayed; h != nil {
		h(key, err)
	}
	state := "stays"
	if errors.Is(err, lease.ErrMoved) {
		state = "is not"
	}
	return fmt.Errorf("rowlock: bridge: %q %s in %s: %w", key, state, where, err)
}

// recalled reports a move that the database had forgotten.
func (r *reports) recalled(ctx context.Context, key string, epoch int64, row lease.Record) {
	r.cfg.Logger.WarnContext(ctx, "rowlock: bridge: the database had forgotten a move; "+
		"check that its replication cannot lose acknowledged commits",
		"key", key, "epoch", epoch, "row", lease.Epoch(row.Token))
	if h := r.cfg.Hooks.Recalled; h != nil {
		h(key, epoch)
	}
}
