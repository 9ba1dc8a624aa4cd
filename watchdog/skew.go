package watchdog

import (
	"container/heap"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// skew has one reading of the store's clock, and when on our clock its request was sent and
// answered.
type skew struct {
	store          time.Duration
	sent, received time.Time

	steps []step // the latest 64, which are more than a request misses
}

// step is by how much the store's clock was seen to have run ahead, and when that was noticed.
type step struct {
	noticed time.Time
	ahead   time.Duration
}

// read takes the next reading. It returns by how much the store's clock has certainly run ahead
// since the last one: by more than the longest time that can have passed between the two, from the
// first request's sending to the second's reply. It is negative if the clock has run behind the
// shortest.
//
// If two requests were under way together, their order at the store is unknown: a reply that was
// overtaken would look like a clock set back, and the next one like a clock that ran ahead. So only
// the first to be answered counts.
func (s *skew) read(store time.Duration, sent, received time.Time) (ahead time.Duration) {
	if sent.Before(s.received) {
		return 0
	}
	if !s.received.IsZero() {
		ran := store - s.store
		ahead = max(ran-received.Sub(s.sent), min(0, ran-sent.Sub(s.received)))
	}
	s.store, s.sent, s.received = store, sent, received
	if ahead > 0 {
		s.steps = append(s.steps[max(0, len(s.steps)-63):], step{received, ahead})
	}
	return ahead
}

// since returns by how much the store's clock is known to have run ahead since a request was sent.
func (s *skew) since(sent time.Time) (ahead time.Duration) {
	for i := len(s.steps) - 1; i >= 0 && sent.Before(s.steps[i].noticed); i-- {
		ahead += s.steps[i].ahead
	}
	return ahead
}

// adjust reads the store's clock in a renewal's answers. If it ran ahead, the store's expiry of
// every lease has come nearer by as much. So does the deadline of each lease whose margin is less
// than twice that and what came before it; the lease is due at once.
func (d *Watchdog) adjust(sent, received time.Time, answers []lease.Renewed) (ahead time.Duration) {
	i := slices.IndexFunc(answers, func(a lease.Renewed) bool { return a.Err == nil && a.Clock != 0 })
	if i < 0 {
		return 0
	}
	if ahead = d.clock.read(answers[i].Clock, sent, received); ahead == 0 {
		return 0
	}
	moved := false
	for _, h := range slices.Clone(d.queue) { // which put changes
		if h.advance(ahead, received) {
			moved = true
			d.queue.put(h)
		}
	}
	if !moved {
		return 0
	}
	heap.Init(&d.ready)
	return ahead
}

// refusal returns why the lease of h, granted to a request sent at that moment, is not watched, or
// nil. ahead is by how much the store's clock has run ahead since. The three causes have three
// cures; one text for all would make readers look for a slow database that is not slow.
func (d *Watchdog) refusal(h *Held, sent, now time.Time, ahead time.Duration) error {
	if d.stopped {
		return fmt.Errorf("%w: lock %q", lease.ErrClosed, h.Key)
	}
	age := now.Sub(sent).Round(time.Millisecond)
	cause := h.over(now)
	switch {
	case cause == nil:
		return nil
	case errors.Is(cause, lease.ErrMaxHold):
		return fmt.Errorf("%w: lock %q: the grant was %s old when it arrived, and MaxHold is %s: "+
			"raise MaxHold, or look for what delays the store",
			cause, h.Key, age, h.Until.Sub(sent))
	case ahead > h.Margin/2 && now.Before(sent.Add(h.TTL-h.Margin)):
		return fmt.Errorf("%w: lock %q: the store's clock ran ahead by %s while the request was under "+
			"way, so its lease of %s may have expired: try again, and slew that clock instead of stepping it",
			cause, h.Key, ahead.Round(time.Millisecond), h.TTL)
	}
	return fmt.Errorf("%w: lock %q: the grant was %s old when it arrived; a lease of %s with a "+
		"margin of %s is trusted for %s after its request was sent: raise TTL, or look for what delays the store",
		cause, h.Key, age, h.TTL, h.Margin, h.TTL-h.Margin)
}

// Moments on this process's monotonic clock are counted from here: a time.Time is three times as
// large, and a lease has four. It is so long ago that each is above 0, also in a bubble of
// testing/synctest, whose clock begins in 2000.
var began = time.Now().Add(-50 * 365 * 24 * time.Hour)

// never is far enough away for an event that must not come, and not so far that sums overflow.
const never time.Duration = math.MaxInt64 / 2

// momentOf counts from now, and not from began: of a wall clock that was set since, it is right.
func momentOf(after time.Duration) time.Time {
	now := time.Now()
	return now.Add(after - now.Sub(began))
}
