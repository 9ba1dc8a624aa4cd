package waitq

import (
	"sync"
	"time"
)

// Budget bounds for how long this process keeps a key among its own waiters: grant after grant
// without another process's between them, which the tokens show. Without it, a process that hands
// over, or locks again at once, could keep the key from all others for ever.
type Budget struct {
	// Grants and For bound a streak. It is over when both are reached.
	Grants int
	For    time.Duration

	mu        sync.Mutex
	cur, prev map[string]streak // two generations, so that keys used once are forgotten
}

// streak is a sequence of grants of one key to this process.
type streak struct {
	token  int64
	grants int
	since  time.Time

	turn     time.Time // when this process's turn began
	released time.Time
	yielded  bool          // the key was released for other processes
	at       time.Time     // of the last grant
	took     time.Duration // from the request of the last grant to its answer
	returns  bool          // the last time, this process asked for the key again at once
	quiet    time.Time     // of the last look, if it found that no other process waits
}

const generation = 1024 // keys remembered, at least

// Granted notes a grant of key with token, requested at now.
func (b *Budget) Granted(key string, token int64, now time.Time, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.find(key)
	if !ok || token != s.token+1 {
		s = streak{since: now, turn: now, returns: s.returns, quiet: s.quiet}
	}
	s.token, s.at, s.yielded, s.took = token, now, false, took
	s.grants++
	b.put(key, s)
}

// Spent reports whether other processes should get key now, and begins a new streak if so.
func (b *Budget) Spent(key string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.find(key)
	if !ok || s.grants < b.Grants || now.Sub(s.since) < b.For {
		return false
	}
	s.grants, s.since = 0, now
	b.put(key, s)
	return true
}

// Looked notes whether other processes waited for key when a release looked for them, at that time.
func (b *Budget) Looked(key string, awaited bool, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.find(key); ok {
		s.quiet = at
		if awaited {
			s.quiet = time.Time{}
		}
		b.put(key, s)
	}
}

// Quiet reports whether the last release that has looked found no other process that waits for key,
// a short while before now. Only then need the store not be asked: while a key is handed over,
// nothing looks.
func (b *Budget) Quiet(key string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, _ := b.find(key)
	return now.Sub(s.quiet) < b.For/4
}

// Soon is how soon a process asks again that is said to return at once. It bounds how much later
// the others are told of a key whose process does not return this time.
const Soon = 2 * time.Millisecond

// Released notes that key was released at now. awaited says that other processes wait for it: a
// turn that has lasted for slice then ends. returns says that the turn goes on, and that this
// process is likely to ask again at once, as it did the last time.
func (b *Budget) Released(
	key string, now time.Time, slice time.Duration, awaited bool,
) (returns bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.find(key)
	if !ok {
		return false
	}
	s.released = now
	over := awaited && now.Sub(s.turn) >= slice
	if over {
		s.turn = now
		s.yielded = true
	}
	b.put(key, s)
	return s.returns && !over
}

// Left notes that the release of key has returned at now: only from then on can this process ask
// again.
func (b *Budget) Left(key string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.find(key); ok {
		s.released = now
		b.put(key, s)
	}
}

// Asks notes that this process asks for key at now. It reports whether the process has released key
// for the others less than room ago.
func (b *Budget) Asks(key string, now time.Time, room time.Duration) (yielded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.find(key)
	if !ok || s.released.IsZero() {
		return false
	}
	ago := now.Sub(s.released)
	if returns := ago <= Soon; returns != s.returns {
		s.returns = returns
		b.put(key, s)
	}
	return s.yielded && ago < room
}

// Holds reports whether this process was granted key less than d before now, and has not released
// it since.
func (b *Budget) Holds(key string, now time.Time, d time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.find(key)
	return ok && s.at.After(s.released) && now.Sub(s.at) < d
}

// Took is how long the last grant of key to this process took, from the request to the answer.
func (b *Budget) Took(key string) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, _ := b.find(key)
	return s.took
}

// Last is the token of the last grant of key to this process, and its time.
func (b *Budget) Last(key string) (token int64, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, _ := b.find(key)
	return s.token, s.at
}

func (b *Budget) find(key string) (streak, bool) {
	if s, ok := b.cur[key]; ok {
		return s, true
	}
	s, ok := b.prev[key]
	return s, ok
}

func (b *Budget) put(key string, s streak) {
	if _, ok := b.cur[key]; !ok && len(b.cur) >= generation || b.cur == nil {
		b.prev, b.cur = b.cur, make(map[string]streak)
	}
	b.cur[key] = s
}
