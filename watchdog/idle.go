package watchdog

import (
	"sync/atomic"
	"time"
)

// idle is how long a lease may go without progress. It is made only for a lease with such a limit.
type idle struct {
	most  time.Duration
	began time.Time
	last  atomic.Int64 // when progress was shown, in ns since began
}

// end is when the lease is over unless its holder shows progress.
func (i *idle) end() time.Time {
	return i.began.Add(time.Duration(i.last.Load())).Add(i.most) // the sum of both may overflow
}

// MaxIdle ends h with lease.ErrIdle unless Progress is called at least every most from now on. Call
// it at most once, and before the first Progress.
func (d *Watchdog) MaxIdle(h *Held, most time.Duration) {
	d.mu.Lock()
	h.idle = &idle{most: most, began: time.Now()}
	if h.watched() {
		h.schedule()
		d.queue.put(h)
	}
	sooner := h.at < d.wakes
	d.mu.Unlock()
	if sooner {
		d.nudge()
	}
}

// Progress says that the holder works. It reports false if it comes too late: the lease has been
// idle for longer than MaxIdle allows, and is over even if the Watchdog has not found that yet, as
// in a process that was stopped. It takes no mutex, and reports true for a lease without MaxIdle.
func (h *Held) Progress() bool {
	i := h.idle
	if i == nil {
		return true
	}
	now := time.Since(i.began)
	for {
		last := i.last.Load()
		switch {
		case now-time.Duration(last) >= i.most:
			return false
		case int64(now) <= last || i.last.CompareAndSwap(last, int64(now)):
			return true // another goroutine's later progress must not be taken back
		}
	}
}
