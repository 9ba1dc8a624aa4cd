package bidq

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/seam"
	"github.com/rowlockdb/rowlock/internal/waitq"
)

// A key that is released is granted sooner to the process that has just released it than to any
// other, because that process need not be woken. Where one process can be woken, the queue uses
// this: a process that asks again at once keeps the key for a time slice, in which no other is
// woken in vain. Then it wakes the next process, and stands back until it is woken itself.

// slice is how long that lasts. To wake another process takes several times as long as a grant to
// this one: with slices of PollMin/2 a quarter of the pairs is lost. With three times PollMin there
// are no more, and with 32 processes waits are three times as long.
func (q *Queue) slice() time.Duration { return q.cfg.PollMin }

// room is how long a key is left to other processes: their pollers poll a key that changes hands
// often every PollMin, a tenth more or less.
func (q *Queue) room() time.Duration { return q.cfg.PollMin * 3 / 2 }

// announces reports whether another process is to be woken now for a key that was released, unless
// this one is about to have it again.
func (q *Queue) announces(key string, awaited bool) bool {
	if !q.hints.Wakes() {
		return awaited
	}
	returns := q.budget.Released(key, time.Now(), q.slice(), awaited)
	if awaited && returns {
		q.hints.AnnounceLater(key, waitq.Soon)
	}
	return awaited && !returns
}

// yields reports whether w, the first of its queue, waits until its process is woken instead of
// bidding.
func (q *Queue) yields(w *waiter) bool {
	if q.budget.Asks(w.Key, time.Now(), q.cfg.PollMin) && q.hints.Wakes() {
		q.watch(w.Key, waitq.Observed{})
		q.local.Lost(w)
		return true
	}
	q.hints.Forget(w.Key)
	return false
}

// precedence is how long a key that was read free is still left to the process that was woken for
// it.
func (q *Queue) precedence(key string, o waitq.Observed) time.Duration {
	if o.Remaining >= 0 || !q.hints.Wakes() {
		return 0
	}
	free := -o.Remaining
	return min(q.cfg.PollMin+10*q.budget.Took(key), q.cfg.PollMax) - free
}

// chosen has the waiters of key bid, for which this process alone was woken. Without any, it wakes
// the next process, unless this one has the key by now: it will wake another when it releases it.
func (q *Queue) chosen(key string) {
	if !q.local.Wake(key) && !q.budget.Holds(key, time.Now(), time.Second) {
		q.hints.PassOn(key)
	}
}

// awaited asks the store whether another process waits for key.
func (q *Queue) awaited(key string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), seam.Timeout)
	defer cancel()
	return q.hints.Awaited(ctx, key)
}
