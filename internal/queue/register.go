package queue

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/lease"
)

// registrationLasts is how long a process counts as waiting. It registers again after half of it.
const registrationLasts = 10 * time.Second

// Register notes in the store that this process waits for keys. Call it before the keys are read: a
// release after that read then finds the registration.
func (h *notifications) Register(ctx context.Context, keys []string) {
	h.Listen()
	if h.store.Registry == nil {
		return
	}
	now := time.Now()
	keys = h.unregistered(keys, now)
	if len(keys) == 0 || h.store.Register(ctx, h.process, h.cfg.Identity, keys, registrationLasts) != nil {
		return // it is repeated before the next poll
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range keys {
		h.until[k] = now.Add(registrationLasts)
	}
}

// unregistered returns those of keys that must be registered (again).
func (h *notifications) unregistered(keys []string, now time.Time) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	past := func(_ string, until time.Time) bool { return until.Before(now) }
	maps.DeleteFunc(h.until, past)
	maps.DeleteFunc(h.noted, past)
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool {
		return h.until[k].Sub(now) > registrationLasts/2
	})
	for _, k := range keys { // even if no answer comes: a release would wake a process that has gone
		h.noted[k] = now.Add(registrationLasts + adapter.Timeout)
	}
	return keys
}

// unregister takes back every registration that the store may have of this process.
func (h *notifications) unregister() {
	h.mu.Lock()
	keys := slices.Sorted(maps.Keys(h.noted))
	h.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), adapter.Timeout)
	defer cancel()
	// A registration under way would be written after it was taken back.
	settling, settled := context.WithTimeout(ctx, adapter.Timeout/2)
	h.store.Settle(settling)
	settled()
	_ = h.store.Unregister(ctx, h.process, keys)
}

// PassOn wakes the next process for keys that this process was woken for and does not want. It
// takes the registrations back, so that the others do not wake this process in vain each time.
func (h *notifications) PassOn(keys ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || !h.wakes.Load() || len(keys) == 0 {
		return
	}
	for _, key := range keys {
		delete(h.until, key)
	}
	h.wg.Go(func() {
		ctx, cancel := context.WithTimeout(h.ctx, adapter.Timeout)
		defer cancel()
		h.Announce(keys...)
		_ = h.store.Unregister(ctx, h.process, keys)
	})
}

// waiterCount is how many processes waited for a key, and when.
type waiterCount struct {
	processes int
	at        time.Time
}

// countLasts is how long a count is believed of a key that changes hands. Of one that is held for
// long it is believed for as long as a registration.
const countLasts = 2 * time.Second

// Waiters returns how many processes wait for the key of each record, or 0 where that is unknown:
// each process then polls as often as if it were alone. It counts those whose count is too old.
func (h *notifications) Waiters(ctx context.Context, records []lease.Record) []int {
	keys := h.uncounted(records)
	var counts []int
	if len(keys) > 0 {
		counts = h.store.Waiting(ctx, keys)
	}
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, n := range counts {
		h.waiters[keys[i]] = waiterCount{n, now}
	}
	all := make([]int, len(records))
	for i, r := range records {
		all[i] = h.waiters[r.Key].processes
	}
	return all
}

func (h *notifications) uncounted(records []lease.Record) (keys []string) {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.waiters, func(_ string, c waiterCount) bool { return now.Sub(c.at) >= registrationLasts })
	for _, r := range records {
		c, known := h.waiters[r.Key]
		if !known || r.Age < h.cfg.Recent && now.Sub(c.at) >= countLasts {
			keys = append(keys, r.Key)
		}
	}
	return keys
}
