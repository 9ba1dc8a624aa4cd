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
}

const generation = 1024 // keys remembered, at least

// Granted notes a grant of key with token, at now.
func (r *Runs) Granted(key string, token int64, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.find(key)
	if !ok || token != last.token+1 {
		last = run{since: now}
	}
	last.token = token
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
