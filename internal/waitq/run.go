package waitq

import (
	"sync"
	"time"
)

// Runs remember for how long this process has kept a key among its own: grant after grant, with nobody else's between, which
// the tokens tell. A process that hands over, or locks again at once, could otherwise keep all others out for ever.
type Runs struct {
	// Most is how many grants, and For how long, a run may last: it is over when both are reached.
	Most int
	For  time.Duration

	mu        sync.Mutex
	cur, prev map[string]run // two generations, so that keys used once are forgotten
}

type run struct {
	token  int64
	grants int
	since  time.Time

	turn     time.Time // when this process's turn began
	released time.Time
	yielded  bool          // the key was released for the others
	at       time.Time     // when it was granted last
	took     time.Duration // from the request to the answer
	returns  bool          // the last time, this process asked for the key again at once
}

const generation = 1024 // keys remembered, at least

// Granted notes a grant of key with token, at now.
func (r *Runs) Granted(key string, token int64, now time.Time, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.find(key)
	if !ok || token != last.token+1 {
		last = run{since: now, turn: now, returns: last.returns}
	}
	last.token, last.at, last.yielded, last.took = token, now, false, took
	last.grants++
	r.put(key, last)
}

// Over reports whether it is time to let others have key, and begins to count anew if it is.
func (r *Runs) Over(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.find(key)
	if !ok || last.grants < r.Most || now.Sub(last.since) < r.For {
		return false
	}
	last.grants, last.since = 0, now
	r.put(key, last)
	return true
}

// Soon is how soon a process asks again that is said to return at once. It bounds how long the others are told too late of a key
// whose process does not return this time.
const Soon = 2 * time.Millisecond

// Released notes that key was released at now. awaited says that other processes wait for it: then a turn ends that has lasted for
// slice. returns says that the turn goes on and this process is likely to ask again at once, as it did the last time.
func (r *Runs) Released(key string, now time.Time, slice time.Duration, awaited bool) (returns bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.find(key)
	if !ok {
		return false
	}
	last.released = now
	over := awaited && now.Sub(last.turn) >= slice
	if over {
		last.turn = now
		last.yielded = true
	}
	r.put(key, last)
	return last.returns && !over
}

// Left notes that the release of key has come to its end at now: only from then on can this process ask again.
func (r *Runs) Left(key string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.find(key); ok {
		last.released = now
		r.put(key, last)
	}
}

// Asks notes that this process asks for key at now. It reports whether it has released the key for the others less than room ago.
func (r *Runs) Asks(key string, now time.Time, room time.Duration) (yielded bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.find(key)
	if !ok || last.released.IsZero() {
		return false
	}
	ago := now.Sub(last.released)
	if returns := ago <= Soon; returns != last.returns {
		last.returns = returns
		r.put(key, last)
	}
	return last.yielded && ago < room
}

// Holds reports whether this process was granted key less than d before now, and has not released it since.
func (r *Runs) Holds(key string, now time.Time, d time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.find(key)
	return ok && last.at.After(last.released) && now.Sub(last.at) < d
}

// Took is how long the last grant of key to this process took, from the request to the answer.
func (r *Runs) Took(key string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, _ := r.find(key)
	return last.took
}

// Last is the token of the last grant of key to this process, and when that was.
func (r *Runs) Last(key string) (token int64, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, _ := r.find(key)
	return last.token, last.at
}

func (r *Runs) find(key string) (run, bool) {
	if last, ok := r.cur[key]; ok {
		return last, true
	}
	last, ok := r.prev[key]
	return last, ok
}

func (r *Runs) put(key string, v run) {
	if _, ok := r.cur[key]; !ok && len(r.cur) >= generation || r.cur == nil {
		r.prev, r.cur = r.cur, make(map[string]run)
	}
	r.cur[key] = v
}
