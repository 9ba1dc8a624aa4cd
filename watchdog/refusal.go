package watchdog

import (
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

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
