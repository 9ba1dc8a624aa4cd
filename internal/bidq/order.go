package bidq

import (
	"time"

	"github.com/rowlockdb/rowlock/internal/waitq"
)

// firstRetry and lastRetry are the pauses between the bids of the process whose turn it is.
const firstRetry, lastRetry = 200 * time.Microsecond, 5 * time.Millisecond

// defers reports whether a caller that asks for key now, and waits until the deadline, if it has
// one, waits for its process's turn. One that would have left before bids at once: it would never
// bid otherwise.
func (r *relay) defers(key string, deadline time.Time) bool {
	if !r.lock(key) {
		return false
	}
	defer r.mu.Unlock()
	r.returns = r.left.IsZero() || time.Since(r.left) <= r.pace.soon(r.q.slice())
	if r.turn != nil {
		r.turn.asked()
	}
	if r.bids() || !r.orderly {
		return false
	}
	r.asks()
	return !r.stuck() && (deadline.IsZero() || deadline.After(r.comes()))
}

// comes is when the turn is to be expected. The caller has the mutex.
func (r *relay) comes() time.Time {
	if r.pace.round == 0 {
		return r.ended.Add(r.late()) // no turn has had a grant yet
	}
	return r.ended.Add(r.pace.round)
}

// bids reports whether it is this process's turn. The caller has the mutex.
func (r *relay) bids() bool { return r.turn != nil && !r.turn.leaves }

// asks has the process queue again, if it does not. The caller has the mutex.
func (r *relay) asks() {
	if r.queued {
		return
	}
	r.queued, r.ended = true, time.Now()
	select {
	case r.want <- struct{}{}:
	default: // it has been told before
	}
}

// waits reports whether this process stands in the server's queue for key, and bids only in its
// turn.
func (r *relay) waits(key string) bool {
	if !r.lock(key) {
		return false
	}
	defer r.mu.Unlock()
	return r.orderly && r.queued && !r.bids()
}

// takes reports whether this process bids for key only in its turn.
func (r *relay) takes(key string) bool {
	if !r.lock(key) {
		return false
	}
	defer r.mu.Unlock()
	return r.orderly
}

// lost has the head bid again within its process's turn: the last holder is about to release the
// key, or another process has come between. Outside a turn it has the process queue.
func (r *relay) lost(key string) (again bool) {
	if !r.lock(key) {
		return false
	}
	defer r.mu.Unlock()
	if !r.orderly {
		return false
	}
	if !r.bids() {
		r.asks()
		return false
	}
	pause := min(firstRetry<<min(r.turn.bids, 8), lastRetry)
	r.turn.bids++
	time.AfterFunc(pause, func() { r.q.local.Wake(key) })
	return true
}

// won notes a grant.
func (r *relay) won(key string, token int64, took time.Duration) {
	if !r.lock(key) {
		return
	}
	defer r.mu.Unlock()
	if token != r.last+1 {
		r.alien = time.Now()
	}
	r.last = token
	r.pace.granted(took)
	if t := r.turn; t != nil {
		t.grants++
		t.since = time.Now()
		t.bids = 0
	}
}

// polled notes when key was last granted, and looks after a turn that does not come.
func (r *relay) polled(key string, o waitq.Observed) {
	if !r.lock(key) {
		return
	}
	defer r.mu.Unlock()
	r.granted = o.At.Add(-o.Age)
	if o.Crowd > 0 { // a count is forgotten after a while
		r.pace.crowd = o.Crowd
	}
	r.stuck()
}

// stuck reports whether the turn does not come: the process whose turn it is may be stopped. Until
// its next turn, this process then bids as if there were no turns, and can be woken. The caller has
// the mutex.
func (r *relay) stuck() bool {
	if !r.orderly || !r.queued || r.turn != nil || time.Since(r.ended) < r.late() {
		return false
	}
	r.orderly, r.unturned = false, unturned{}
	r.q.store.Defers("")
	r.q.hints.Renew(r.key)
	r.q.poller.Soon(r.key) // which registers it
	return true
}

// spent reports whether the process releases the key for another one, instead of handing it to its
// next waiter: its turn has lasted for long enough, or it has got the key without one.
func (r *relay) spent(key string) bool {
	if !r.lock(key) {
		return false
	}
	defer r.mu.Unlock()
	return !r.bids() || r.ripe(time.Now())
}

// handed notes that a caller has handed the key to the next one of this process.
func (r *relay) handed(key string) {
	if !r.lock(key) {
		return
	}
	defer r.mu.Unlock()
	r.gaveUp(time.Now())
}
