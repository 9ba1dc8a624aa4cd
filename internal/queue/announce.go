package queue

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// Announce notifies other processes at once, in the caller's goroutine, so that no waiter waits for
// a goroutine to be scheduled. Keys that come during the statement make one statement together
// after it.
func (h *notifications) Announce(keys ...string) {
	h.mu.Lock()
	if !h.sends.Load() || h.stopped || len(keys) == 0 {
		h.mu.Unlock()
		return
	}
	for _, key := range keys {
		h.news[key] = struct{}{}
	}
	mine := !h.telling
	if mine {
		h.telling = true
		h.wg.Add(1)
	}
	h.mu.Unlock()
	if !mine {
		return
	}
	defer h.wg.Done()
	if more := h.tell(); more {
		h.wg.Go(func() {
			for more := true; more; {
				more = h.tell()
			}
		})
	}
}

// tell sends what there is, and reports whether more has come meanwhile.
func (h *notifications) tell() (more bool) {
	h.mu.Lock()
	keys := slices.Sorted(maps.Keys(h.news))
	clear(h.news)
	h.mu.Unlock()
	if h.sends.Load() && len(keys) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(h.ctx), adapter.Timeout)
		defer cancel()
		if err := h.send(ctx, keys); err != nil {
			level := slog.LevelDebug
			if errors.Is(err, lease.ErrUnsupported) { // stores tell it once
				level = slog.LevelWarn
			}
			h.cfg.Log.LogAttrs(h.ctx, level, "rowlock: a hint was not sent; the waiters poll",
				slog.Any("error", err))
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.telling = len(h.news) > 0
	return h.telling
}

// send wakes one process for each key, or notifies all.
func (h *notifications) send(ctx context.Context, keys []string) error {
	if h.wakes.Load() {
		return h.store.Waker.Wake(ctx, h.process, keys)
	}
	return h.store.Notifier.Announce(ctx, keys)
}
