package queue

import "time"

// The process that has released a key is granted it sooner than any other, because it need not be
// woken. Where one can be woken, a process that asks again at once keeps the key for a time slice
// of PollMin, in which no other is woken in vain. Then it wakes the next, and waits until it is
// woken itself.
//
// With half of that time a quarter of the pairs is lost, because to wake another process takes
// several grants' time. Three times as long makes waits longer, and no pairs.

// room is how long a key is left to other processes: their pollers poll a key that changes hands
// often every PollMin, a tenth more or less.
func (q *Attempts) room() time.Duration { return q.cfg.PollMin * 3 / 2 }

// precedence is how long a key that was read free is still left to the process that was woken for
// it.
func (q *Attempts) precedence(key string, o observed) time.Duration {
	if o.Remaining >= 0 || !q.notify.wakes.Load() {
		return 0
	}
	u := q.keys.of(key)
	// Others were granted the key all the time, for longer than all that wait would keep it: the
	// process that has it is sent nothing, or this one's registration was lost.
	if o.Fleeting && time.Since(u.at) > 4*time.Duration(max(o.Waiters, 2))*q.cfg.PollMin {
		return 0
	}
	free := -o.Remaining
	return min(q.cfg.PollMin+10*u.took, q.cfg.PollMax) - free
}

// chosen has the waiters of key ask, for which this process alone was woken. Without any, it wakes
// the next process, unless this one has the key by now: it will wake another when it releases it.
func (q *Attempts) chosen(key string) {
	if q.keys.wake(key) {
		return
	}
	if u := q.keys.of(key); !u.holds(time.Now(), time.Second) {
		q.notify.PassOn(key)
	}
}
