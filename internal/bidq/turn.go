package bidq

import (
	"time"
)

// turn is this process's turn of a key.
type turn struct {
	began  time.Time
	over   chan bool // gets one value: whether the process queues again
	grants int       // within the turn
	since  time.Time // of the last grant
	held   time.Duration
	bids   int         // that were lost in a row
	leaves bool        // the key is left to processes without turns, before the next turn
	limit  *time.Timer // ends a turn that lasts too long
	absent *time.Timer // ends the turn of a process that does not ask again
}

const (
	// longestTurn bounds a turn in which the key is held, because the server ends a session that is
	// silent for 2 s.
	longestTurn = time.Second
	// longestRound is how long a round may take. The server ends a wait for a turn after 4 s.
	longestRound = 2 * time.Second
)

// take is this process's turn: its head bids. It reports whether the process queues again.
func (r *relay) take(key string) (again bool) {
	t, first := r.begin()
	if t == nil {
		return false
	}
	if first {
		r.q.hints.Renew(key) // as a process that is not to be woken
	}
	if r.idle(key) {
		r.end(t, false)
	} else {
		r.q.local.Resume(key)
	}
	return <-t.over
}

// begin returns nil if the client has ended. first says that no turn came before.
func (r *relay) begin() (t *turn, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return nil, false
	}
	now := time.Now()
	t = &turn{began: now, over: make(chan bool, 1)}
	t.limit = time.AfterFunc(r.most(), func() { r.expire(t) })
	if first = !r.orderly; r.pace.turn > 0 {
		r.pace.came(now.Sub(r.ended))
	}
	r.turn, r.orderly = t, true
	r.q.store.Defers(r.key)
	return t, first
}

// idle reports whether the process neither holds key nor waits for it.
func (r *relay) idle(key string) bool {
	return r.q.local.Len(key) == 0 && !r.holds(key)
}

func (r *relay) holds(key string) bool {
	return r.q.budget.Holds(key, time.Now(), longestTurn)
}

// most is for how long a process keeps the turn while it is granted the key.
func (r *relay) most() time.Duration { return min(r.q.slice(), longestTurn/2) }

// end ends t. It reports false if t has ended before.
func (r *relay) end(t *turn, again bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn != t {
		return false
	}
	r.finish(again)
	return true
}

// finish ends the turn, if there is one. The caller has the mutex.
func (r *relay) finish(again bool) {
	t := r.turn
	if t == nil {
		return
	}
	t.limit.Stop()
	t.asked()
	r.turn, r.queued, r.ended = nil, again, time.Now()
	if lasted := r.ended.Sub(t.began); t.grants > 0 {
		r.pace.took(lasted, t.grants)
	}
	t.over <- again
}

// asked notes that the process has asked for the key again.
func (t *turn) asked() {
	if t.absent != nil {
		t.absent.Stop()
		t.absent = nil
	}
}

// expire ends a turn that has lasted for too long: a process that holds the key keeps the turn for
// a second, and one that cannot get it for PollMax. Then it waits as if there were no turns.
func (r *relay) expire(t *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn != t {
		return
	}
	lasted := time.Since(t.began)
	if left := r.patience(t) - lasted; left > 0 && !r.stopped {
		t.limit.Reset(min(left, r.most()))
		return
	}
	if t.leaves {
		r.finish(!r.useless() && (r.q.local.Len(r.key) > 0 || r.returns))
		return
	}
	if t.grants == 0 && r.granted.Before(t.began) { // one process has held it all the time
		r.alien = time.Time{}
		r.finish(false)
	} else {
		r.finish(r.q.local.Len(r.key) > 0 && !r.holds(r.key))
	}
	if key := r.key; !r.holds(key) && !r.stopped { // its last caller may have asked and left
		r.wg.Go(func() { r.q.hints.Announce(key) })
	}
}

// patience is how long t may last as things are now. The caller has the mutex.
func (r *relay) patience(t *turn) time.Duration {
	switch {
	case t.leaves:
		return 0
	case r.holds(r.key):
		return longestTurn
	case r.q.local.Len(r.key) > 0:
		return min(max(r.q.cfg.PollMax, 2*r.most()), longestTurn)
	}
	return 2 * r.most()
}

// ripe reports whether the turn has lasted for long enough. It lasts longer with waiters: a
// hand-over is one statement for each pair, and to pass a key to another process takes three. The
// caller has the mutex.
func (r *relay) ripe(now time.Time) bool {
	round := 4 * r.q.cfg.PollMin
	if r.q.local.Len(r.key) > 0 {
		round *= 4
	}
	t := r.turn
	return r.pace.ripe(t.grants, now.Sub(t.began), t.held+now.Sub(t.since), round, r.most())
}

// leaves is called before each release of key, and reports whether it ends the turn. The server
// then wakes the next process while it commits the release. Afterwards would be later by as long as
// it takes to wake a process, in which the key would lie free.
func (r *relay) leaves(key string) (passed bool) {
	if !r.lock(key) {
		return false
	}
	defer r.mu.Unlock()
	if !r.orderly {
		return false
	}
	waits, now := r.q.local.Len(key) > 0, time.Now()
	if !r.bids() {
		if waits {
			r.asks()
		}
		return false
	}
	if back := waits || r.returns; back && !r.ripe(now) {
		return false
	}
	if r.owes() {
		r.turn.leaves = true
		return true
	}
	// A process that is alone with the key has no turns, however many callers wait in it.
	r.finish(!r.useless() && (waits || r.returns) && now.Sub(r.alien) <= idleTurns)
	return true
}

// endures ends a turn whose last caller has left the key to the end of its lease. Else the turn
// would last as if the process still had the key.
func (r *relay) endures(key string) {
	if !r.lock(key) {
		return
	}
	defer r.mu.Unlock()
	if r.turn != nil {
		r.gaveUp(time.Now())
		r.finish(!r.useless() && (r.returns || r.q.local.Len(key) > 0))
	}
}

// released notes a release, and reports whether it was within a turn, which it has passed on or
// not: then it wakes no process but those that have no turns.
func (r *relay) released(key string, awaited, passed bool) bool {
	if !r.lock(key) {
		return false
	}
	defer r.mu.Unlock()
	if r.turn == nil && !passed {
		return false
	}
	r.gaveUp(time.Now())
	if n := r.q.hints.Crowd(key); n > 0 { // a count is forgotten after a while
		r.pace.crowd = n
	}
	if passed {
		r.wake(key, awaited)
	} else {
		r.absents(key, awaited)
	}
	return true
}

// absents ends the turn soon, unless the process asks for the key again. The caller has the mutex.
func (r *relay) absents(key string, awaited bool) {
	t := r.turn
	t.asked()
	t.absent = time.AfterFunc(r.pace.soon(r.most()), func() {
		if r.idle(key) && r.end(t, false) && awaited {
			r.q.hints.Announce(key)
		}
	})
}

// gone notes that a caller has gone that waited for key.
func (r *relay) gone(key string) {
	if !r.lock(key) {
		return
	}
	defer r.mu.Unlock()
	if r.bids() && r.idle(key) {
		r.absents(key, true)
	}
}

// gaveUp notes that a caller has given the key up. The caller has the mutex.
func (r *relay) gaveUp(now time.Time) {
	r.left = now
	if t := r.turn; t != nil && !t.since.IsZero() {
		t.held += now.Sub(t.since)
		t.since = now
	}
}
