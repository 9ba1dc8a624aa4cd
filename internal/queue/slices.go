package queue

import (
	"time"
)

// The process that has released a key is granted it sooner than any other, because it need not be
// woken. Where one can be woken, a process that asks again at once keeps the key for a time slice,
// in which no other is woken in vain. Then it wakes the next, and waits until it is woken itself.

// slice is how long that lasts. With half of it a quarter of the pairs is lost, because to wake
// another process takes several grants' time. Three times as long makes waits longer, and no pairs.
func (q *Attempts) slice() time.Duration { return q.cfg.PollMin }

// room is how long a key is left to other processes: their pollers poll a key that changes hands
// often every PollMin, a tenth more or less.
func (q *Attempts) room() time.Duration { return q.cfg.PollMin * 3 / 2 }

// announces reports whether another process is to be woken now for a key that was released, unless
// this one is about to have it again.
func (q *Attempts) announces(key string, awaited bool) bool {
	if !q.notify.Wakes() {
		return awaited
	}
	returns := q.budget.Released(key, time.Now(), q.slice(), awaited)
	if awaited && returns {
		q.notify.AnnounceLater(key, soon)
	}
	return awaited && !returns
}

// yields reports whether w, the first of its queue, waits until its process is woken instead of
// bidding.
func (q *Attempts) yields(w *waiter) bool {
	if q.budget.Asks(w.Key, time.Now(), q.cfg.PollMin) && q.notify.Wakes() {
		q.watch(w.Key, observed{})
		q.local.Lost(w)
		return true
	}
	q.notify.Forget(w.Key)
	return false
}

// precedence is how long a key that was read free is still left to the process that was woken for
// it.
func (q *Attempts) precedence(key string, o observed) time.Duration {
	if o.Remaining >= 0 || !q.notify.Wakes() || q.passedOver(key, o) {
		return 0
	}
	free := -o.Remaining
	return min(q.cfg.PollMin+10*q.budget.Of(key).Took, q.cfg.PollMax) - free
}

// spent reports whether this process releases key for others, although callers of its own wait. It
// keeps a key for longer that they hand over: that takes one statement, and to pass the key to
// another process three.
func (q *Attempts) spent(key string) bool {
	now := time.Now()
	return q.budget.Spent(key, now) || q.notify.Wakes() && q.budget.Of(key).Over(now, 3*q.slice())
}

// passedOver reports whether others were granted key all the time, for longer than all that wait
// would keep it: the process that has it hears nothing, or this one's registration was lost.
func (q *Attempts) passedOver(key string, o observed) bool {
	return o.Fleeting && time.Since(q.budget.Of(key).At) > 4*time.Duration(max(o.Waiters, 2))*q.slice()
}

// chosen has the waiters of key bid, for which this process alone was woken. Without any, it wakes
// the next process, unless this one has the key by now: it will wake another when it releases it.
func (q *Attempts) chosen(key string) {
	if !q.local.Wake(key) && !q.budget.Of(key).Holds(time.Now(), time.Second) {
		q.notify.PassOn(key)
	}
}
