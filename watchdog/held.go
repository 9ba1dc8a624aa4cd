package watchdog

import (
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
	Until  time.Time
	Holder Holder
	// Quiet leaves the lease out of Config.Renewed.
	Quiet bool
	// Renewed: other requests than the granting one, or copies of it, may give the lease its TTL. The
	// watchdog sets it, too; see Renewing.
	Renewed bool

	flying   bool          // a renewal of it is under way, or waits for another to end
	leaving  bool          // a transaction of the holder's may have released it: see Watchdog.InTx
	place    int32         // in the watchdog's queue, from 1; 0 if not watched
	deadline time.Duration // as all of them after began
	due      time.Duration // of the next renewal
	at       time.Duration // of the next event: the heap's order
	fenced   time.Duration // when the holder last fenced; 0 if a renewal found the row unlocked since
	ahead    time.Duration // by how much the store's clock ran ahead, that deadline does not count
	idle     *idle         // nil: no limit
	guard    *Held         // is watched in place of this one, which is paused; else nil
}

// Holder is what embeds the Held: a function would be allocated for each lease.
type Holder interface {
	// End is called once, without a mutex held, when the lease is over: with lease.ErrLost, with
	// lease.ErrMaxHold, with lease.ErrIdle (see Watchdog.MaxIdle) or, after Leaving, with
	// lease.ErrUnlocked. It must end the holder's context and return at once, because the ends of
	// other leases wait for it: what blocks, as a log may, is another goroutine's.
	End(cause error)
	// Context is given to Config.Failed and Config.Renewed if they tell of one lease. Never nil.
	Context() context.Context
}

// watched reports whether the lease is in a queue.
func (h *Held) watched() bool { return h.place > 0 }

// trust sets the deadline for a request that was sent at that moment and came back granted or
// extended.
func (h *Held) trust(sent time.Time) {
	h.deadline = sent.Sub(began) + min(h.TTL-h.Margin, never)
	h.due, h.ahead = never, 0
	if h.Every > 0 { // not all at once after a restart
		h.due = sent.Sub(began) + min(h.Every, never) - rand.N(h.Every/10+1)
	}
	h.schedule()
}

// extendFenced extends the deadline of a fenced lease. It becomes a margin after the request that
// found the row ours and locked was sent, or a margin before the expiry that this request found
// committed, whichever is later. The store's clock may have run ahead by late since the request was
// sent.
func (h *Held) extendFenced(sent time.Time, remaining, late time.Duration) {
	committed := min(remaining, h.TTL) - h.Margin - max(late, 0)
	h.deadline = max(h.deadline, sent.Sub(began)+max(h.Margin, committed))
}

// advance moves the deadline forward if the store's clock ran ahead by more than half the margin,
// in one step or several, and makes the lease due at once. It reports whether it did. A step back
// takes from the steps before it: two servers behind one address, whose clocks differ, would
// otherwise add up for ever.
func (h *Held) advance(ahead time.Duration, now time.Time) bool {
	if h.ahead = max(0, h.ahead+ahead); h.ahead <= h.Margin/2 {
		return false
	}
	h.deadline, h.ahead = h.deadline-h.ahead, 0
	if h.Every > 0 && !h.flying {
		h.due = min(h.due, now.Sub(began))
	}
	h.schedule()
	return true
}

// retry makes the lease due again soon, after a renewal that found it busy or failed.
func (h *Held) retry(now time.Time) {
	if h.Every == 0 || h.flying {
		return
	}
	h.due = now.Sub(began) + h.pause(now)
	h.schedule()
}

// pause is a tenth of the TTL, or a quarter of the margin behind a fence. It is somewhat less if
// that puts the last try shortly before the deadline: a try at the deadline would be too late for a
// store that recovers just in time.
func (h *Held) pause(now time.Time) time.Duration {
	step := h.TTL / 10
	if h.fenced != 0 {
		step = max(min(step, h.Margin/4), time.Millisecond)
	}
	left := h.deadline - now.Sub(began) - h.TTL/40
	if left <= 0 {
		return step
	}
	return left / ((left + step - 1) / step)
}

func (h *Held) schedule() {
	h.at = min(h.deadline, h.due)
	if !h.Until.IsZero() {
		h.at = min(h.at, h.Until.Sub(began))
	}
	if h.idle != nil {
		h.at = min(h.at, h.idle.end().Sub(began))
	}
}

// delay is how much later than was due a renewal was sent, if that is more than a quarter of Every:
// counted from the request that the deadline counts from.
func (h *Held) delay(sent time.Time) time.Duration {
	since := sent.Sub(began) - h.deadline + h.TTL - h.Margin
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
	case now.Sub(began) >= h.deadline:
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
	return h.at > was
}

// Renewing returns what reports whether a renewal of h is under way, and nil if h is not Renewed.
// What a holder has the store do after Drop may be undone by a renewal, or a copy of one, that is
// carried out after it.
func (d *Watchdog) Renewing(h *Held) func() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !h.Renewed {
		return nil
	}
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return h.flying && !d.stopped
	}
}

// ending is a lease that is over, and the cause. Its End is called after the mutex is unlocked.
type ending struct {
	h     *Held
	cause error
}

// queue is a heap of leases by their next event. Of container/heap each short lock would call four
// methods, through an interface.
type queue []*Held

// put moves h to where its next event has it, and inserts it if it is not watched.
func (q *queue) put(h *Held) {
	if h.place == 0 {
		*q = append(*q, h)
		h.place = int32(len(*q))
	}
	all, at := *q, int(h.place-1)
	for ; at > 0 && h.at < all[(at-1)/2].at; at = (at - 1) / 2 {
		all[at] = all[(at-1)/2]
		all[at].place = int32(at + 1)
	}
	for {
		below := 2*at + 1
		if below+1 < len(all) && all[below+1].at < all[below].at {
			below++
		}
		if below >= len(all) || h.at <= all[below].at {
			break
		}
		all[at] = all[below]
		all[at].place = int32(at + 1)
		at = below
	}
	all[at], h.place = h, int32(at+1)
}

// remove has the last one take the place of h.
func (q *queue) remove(h *Held) {
	end := len(*q) - 1
	last := (*q)[end]
	*q = slices.Delete(*q, end, end+1)
	if last != h {
		last.place = h.place
		q.put(last)
	}
	h.place = 0
}

// urgent is a heap of leases that are due, by their deadlines. In the order in which they came due,
// a short lease would end behind many long ones that have time. Sorting a million takes too long.
type urgent []*Held

func (u urgent) Len() int           { return len(u) }
func (u urgent) Less(i, j int) bool { return u[i].deadline < u[j].deadline }
func (u urgent) Swap(i, j int)      { u[i], u[j] = u[j], u[i] }
func (u *urgent) Push(x any)        { *u = append(*u, x.(*Held)) }

func (u *urgent) Pop() any {
	h := (*u)[len(*u)-1]
	*u = slices.Delete(*u, len(*u)-1, len(*u))
	return h
}
