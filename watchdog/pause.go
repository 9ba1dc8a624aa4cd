package watchdog

import (
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Pause sends no renewal of h until Resume, because its holder is about to share its key: a renewal
// of the lease as it was would say that it is lost. The answer to one under way is ignored. The
// lease ends all the same at its deadline and at its limits. Pause returns false if h is not
// watched.
func (d *Watchdog) Pause(h *Held) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !h.watched() {
		return false
	}
	d.queue.remove(h)
	// Or it would be ready twice after Resume.
	d.ready = slices.DeleteFunc(d.ready, func(due *Held) bool { return due == h })
	heap.Init(&d.ready)
	h.flying, h.Renewed = false, true // by the request that shares its key
	guard := *h
	guard.Every, guard.due = 0, never
	guard.schedule()
	h.guard = &guard
	d.queue.put(h.guard)
	return true
}

// Resume renews h again, which was paused. If shared, its owner is one of those that hold the key
// together since a request that was sent at that moment; otherwise the lease is what it was. The
// reason why it is not watched any more is as of Keep, or lease.ErrLost if it has ended or was
// dropped meanwhile.
func (d *Watchdog) Resume(h *Held, shared bool, sent time.Time) error {
	d.mu.Lock()
	defer d.nudge()
	defer d.mu.Unlock()
	h.Shared = h.Shared || shared // also if it is over: its holder releases what the store has
	guard := h.guard
	if h.guard = nil; guard == nil || !guard.watched() {
		return fmt.Errorf("%w: lock %q", lease.ErrLost, h.Key)
	}
	d.queue.remove(guard)
	now := time.Now()
	h.deadline, h.ahead, h.due = guard.deadline, guard.ahead, never
	if !shared {
		if h.Every > 0 {
			h.due = now.Sub(began)
		}
		h.schedule()
		d.queue.put(h)
		return nil
	}
	ahead := d.clock.since(sent)
	h.trust(sent)
	h.advance(ahead, now)
	if err := d.refusal(h, sent, now, ahead); err != nil {
		return err
	}
	d.queue.put(h)
	return nil
}

// Share notes that the owner of h, which is not watched, shares the key.
func (d *Watchdog) Share(h *Held) {
	d.mu.Lock()
	h.Shared = true
	d.mu.Unlock()
}
