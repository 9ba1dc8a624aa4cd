//go:build linux

package fight

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock"
)

// longest is the ctx of calls that should not need one, and patience that of calls that wait.
const (
	longest  = 20 * time.Second
	patience = 2 * time.Second
)

// acts are what a goroutine can do. None ends with a lock that is still held.
var acts = map[string]func(ctx context.Context, h *hand){
	// try takes a key if it is free, and releases it at once.
	"try": func(_ context.Context, h *hand) { h.unlock(h.try(h.key())) },
	// lock waits for a key and keeps it for a moment.
	"lock": func(ctx context.Context, h *hand) {
		got := h.lock(ctx, h.key(), patience)
		Sleep(ctx, h.upTo(2*time.Millisecond))
		h.unlock(got)
	},
	// fenced counts under the lock, once or a few times.
	"fenced": func(ctx context.Context, h *hand) {
		got := h.lock(ctx, h.key(), patience)
		for range 1 + h.rng.IntN(3) {
			h.count(got, false)
		}
		h.unlock(got)
	},
	// leave counts and unlocks in one transaction.
	"leave": func(ctx context.Context, h *hand) {
		got := h.lock(ctx, h.key(), patience)
		h.count(got, true)
		h.unlock(got)
	},
	// section counts in DoTx, which does all of it, and undoes some.
	"section": func(ctx context.Context, h *hand) { h.section(ctx, h.key()) },
	// all takes two to four keys together.
	"all": func(ctx context.Context, h *hand) {
		got := h.lockAll(ctx, h.rng.IntN(2) == 0)
		if h.rng.IntN(2) == 0 {
			h.count(got, false)
		}
		h.unlock(got)
	},
	// short sometimes lets the lease run out under its holder, which then counts and unlocks as if it
	// still had it.
	"short": func(ctx context.Context, h *hand) {
		ttl := 100*time.Millisecond + h.upTo(100*time.Millisecond)
		got := h.lockFor(ctx, h.key(), patience, ttl, rowlock.NoRenew())
		Sleep(ctx, h.upTo(ttl*5/4))
		h.count(got, h.rng.IntN(3) == 0)
		h.unlock(got)
	},
	// hasty gives up while the request is under way.
	"hasty": func(ctx context.Context, h *hand) { h.unlock(h.lock(ctx, h.key(), h.upTo(5*time.Millisecond)+1)) },
	// brink ends a lock just before its holder must take it for lost: a process that is stopped then
	// sends what the row must refuse.
	"brink": func(ctx context.Context, h *hand) {
		ttl := 100 * time.Millisecond
		got := h.lockFor(ctx, h.key(), patience, ttl, rowlock.NoRenew())
		if got == nil {
			return
		}
		Sleep(ctx, time.Until(got.locks[0].Deadline())-h.upTo(5*time.Millisecond))
		if n := h.rng.IntN(3); n > 0 {
			h.count(got, n == 1)
		}
		h.unlock(got)
	},
	// late is a transaction that is longer than its lease, which no other caller can take before it
	// ends.
	"late": func(ctx context.Context, h *hand) {
		ttl := 150 * time.Millisecond
		got := h.lockFor(ctx, h.key(), patience, ttl)
		if got == nil {
			return
		}
		got.dwell = h.upTo(2 * ttl)
		h.count(got, false)
		h.unlock(got)
	},
	// steady keeps one lock for the whole phase, with transactions one after the other under it.
	"steady": func(ctx context.Context, h *hand) { h.hold(ctx, func(got *held) { h.count(got, false) }) },
	// turns is the same with two transactions at once: each must see what the other has written.
	"turns": func(ctx context.Context, h *hand) {
		h.hold(ctx, func(got *held) {
			done := make(chan struct{})
			go func() { defer close(done); h.count(got, false) }()
			h.count(got, false)
			<-done
		})
	},
	// move brings a key to the cluster or back.
	"move": func(ctx context.Context, h *hand) {
		Sleep(ctx, h.upTo(time.Second))
		h.move(ctx, h.key(), h.rng.IntN(2) == 0)
	},
}

// holdTTL is the lease of a holder in a calm phase.
const holdTTL = 3 * time.Second

// hold keeps the hand's own key until the phase ends, or the lock does.
func (h *hand) hold(ctx context.Context, f func(got *held)) {
	got := h.lockFor(ctx, h.key(), patience, holdTTL)
	if got == nil {
		return
	}
	got.dwell = 15 * time.Millisecond
	for ctx.Err() == nil && got.locks[0].Context().Err() == nil {
		f(got)
	}
	h.unlock(got)
}
