package watchdog

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// Held is one watched lease. Set its exported fields before Keep and do not change them afterwards.
// Embed it by value in your own struct, so that a held lock is one allocation.
type Held struct {
	lease.Lease
	TTL    time.Duration
	Margin time.Duration
	// Every is how long after one renewal the next is due. 0 means never: the lease is watched, and
	// not renewed.
	Every time.Duration
	// Until is when to stop renewing and end the lease with lease.ErrMaxHold. The zero time means
	// never.
	Until time.Time
	// End is called once, without a mutex held, when the lease is over: with lease.ErrLost, with
	// lease.ErrMaxHold, with lease.ErrIdle (see Watchdog.MaxIdle) or, after Leaving, with
	// lease.ErrUnlocked. It must end the holder's context and return at once, because the ends of
	// other leases wait for it: what blocks, as a log may, is another goroutine's.
	End func(cause error)
	// Context is given to Config.Failed and Config.Renewed if they are about this lease alone. May
	// be nil.
	Context context.Context
	// Quiet leaves the lease out of Config.Renewed.
	Quiet bool

	timing
	inTx
	idle  *idle // nil: no limit
	guard *Held // is watched in place of this one, which is paused; else nil
}

// timing is until when a lease is trusted, and where it stands in the watchdog's queue.
type timing struct {
	deadline time.Time
	due      time.Time // of the next renewal
	at       time.Time // of the next event: the heap's order
	place    int32     // in the heap, from 1; 0 if not watched
	flying   bool      // a renewal of it is under way, or waits for another to end
}

// watched reports whether the lease is in a queue.
func (t *timing) watched() bool { return t.place > 0 }

// inTx is what the holder's own transactions may have done to the row: see Watchdog.InTx.
type inTx struct {
	fenced  time.Time // when the holder last fenced; zero if a renewal found the row unlocked since
	leaving bool
}

// never is far enough away for an event that must not come.
const never = 100 * 365 * 24 * time.Hour

// trust sets the deadline for a request that was sent at that moment and came back granted or
// extended.
func (h *Held) trust(sent time.Time) {
	h.deadline = sent.Add(h.TTL - h.Margin)
	h.due = sent.Add(never)
	if h.Every > 0 {
		h.due = sent.Add(h.Every - rand.N(h.Every/10+1)) // not all at once after a restart
	}
	h.schedule()
}

// extendFenced extends the deadline of a fenced lease. It becomes a margin after the request that
// found the row ours and locked was sent, or a margin before the expiry that this request found
// committed, whichever is later. The store's clock may have run ahead by late since the request was
// sent.
func (h *Held) extendFenced(sent time.Time, remaining, late time.Duration) {
	until := sent.Add(h.Margin)
	if committed := sent.Add(min(remaining, h.TTL) - h.Margin - max(late, 0)); committed.After(until) {
		until = committed
	}
	if until.After(h.deadline) {
		h.deadline = until
	}
}

// advance moves the deadline forward if the store's clock ran ahead by more than half the margin,
// and makes the lease due at once. It reports whether it did.
func (h *Held) advance(ahead time.Duration, now time.Time) bool {
	if ahead <= h.Margin/2 {
		return false
	}
	h.deadline = h.deadline.Add(-ahead)
	if h.Every > 0 && !h.flying {
		h.due = earliest(h.due, now)
	}
	h.schedule()
	return true
}

// retry makes the lease due again soon, after a renewal that found it busy or failed.
func (h *Held) retry(now time.Time) {
	if h.Every == 0 || h.flying {
		return
	}
	h.due = now.Add(h.pause(now))
	h.schedule()
}

// pause is a tenth of the TTL, or a quarter of the margin behind a fence. It is somewhat less if
// that puts the last try shortly before the deadline: a try at the deadline would be too late for a
// store that recovers just in time.
func (h *Held) pause(now time.Time) time.Duration {
	step := h.TTL / 10
	if !h.fenced.IsZero() {
		step = max(min(step, h.Margin/4), time.Millisecond)
	}
	left := h.deadline.Sub(now) - h.TTL/40
	if left <= 0 {
		return step
	}
	return left / ((left + step - 1) / step)
}

func (h *Held) schedule() {
	h.at = h.deadline
	if h.due.Before(h.at) {
		h.at = h.due
	}
	if !h.Until.IsZero() {
		h.at = earliest(h.at, h.Until)
	}
	if h.idle != nil {
		h.at = earliest(h.at, h.idle.end())
	}
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// delay is how much later than was due a renewal was sent, if that is more than a quarter of Every:
// counted from the request that the deadline counts from.
func (h *Held) delay(sent time.Time) time.Duration {
	since := sent.Sub(h.deadline) + h.TTL - h.Margin
	if h.Quiet || h.Every == 0 || since <= h.Every+h.Every/4 {
		return 0
	}
	return since - h.Every
}

// delayed is a lease that was renewed late.
type delayed struct {
	lease.Lease
	by time.Duration
}

// over returns why the lease is over at now, or nil.
func (h *Held) over(now time.Time) error {
	switch {
	case !now.Before(h.deadline):
		return lease.ErrLost
	case !h.Until.IsZero() && !now.Before(h.Until):
		return lease.ErrMaxHold
	case h.idle != nil && !now.Before(h.idle.end()):
		return lease.ErrIdle
	}
	return nil
}

// putOff reports whether the event that is next was the end of the idle time, and progress has put
// it off since. The next event is then set anew.
func (h *Held) putOff() bool {
	if h.idle == nil {
		return false
	}
	was := h.at
	h.schedule()
	return h.at.After(was)
}

// ending is a lease that is over, and the cause. Its End is called after the mutex is unlocked.
type ending struct {
	h     *Held
	cause error
}

// queue is a heap of leases by their next event.
type queue []*Held

func (q *queue) remove(h *Held) { heap.Remove(q, int(h.place-1)) }
func (q *queue) fix(h *Held)    { heap.Fix(q, int(h.place-1)) }

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = int32(i+1), int32(j+1)
}

func (q *queue) Push(x any) {
	h := x.(*Held)
	*q = append(*q, h)
	h.place = int32(len(*q))
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	h := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	h.place = 0
	return h
}

// urgent is a heap of leases that are due, by their deadlines. In the order in which they came due,
// a short lease would end behind many long ones that have time.
type urgent []due

// due is a lease with its deadline when it came due: in a heap, a lease must not change its place.
type due struct {
	h  *Held
	by time.Time
}

// reorder orders the heap anew after deadlines have changed.
func (u urgent) reorder() {
	for i := range u {
		u[i].by = u[i].h.deadline
	}
	heap.Init(&u)
}

// remove removes a lease that may be in the heap.
func (u *urgent) remove(h *Held) {
	*u = slices.DeleteFunc(*u, func(d due) bool { return d.h == h })
	heap.Init(u)
}

func (u urgent) Len() int           { return len(u) }
func (u urgent) Less(i, j int) bool { return u[i].by.Before(u[j].by) }
func (u urgent) Swap(i, j int)      { u[i], u[j] = u[j], u[i] }
func (u *urgent) Push(x any)        { *u = append(*u, x.(due)) }

func (u *urgent) Pop() any {
	last := len(*u) - 1
	x := (*u)[last]
	(*u)[last] = due{}
	*u = (*u)[:last]
	return x
}
