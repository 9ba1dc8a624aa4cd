package queue

import (
	"sync"
	"time"
)

// budget bounds for how long this process keeps a key among its own waiters: grant after grant
// without another process's between them, which the tokens show. Without it, a process that hands
// over, or locks again at once, could keep the key from all others for ever.
type budget struct {
	// Grants and For bound consecutive grants. They are over when both are reached.
	Grants int
	For    time.Duration

	mu        sync.Mutex
	cur, prev map[string]*keyGrants // two generations, so that keys used once are forgotten
	spare     []*keyGrants          // of keys that were
}

// keyGrants is a sequence of consecutive grants of one key to this process.
type keyGrants struct {
	Token int64         // of the last grant
	At    time.Time     // when it was requested
	Took  time.Duration // from then to its answer

	grants   int
	since    time.Time
	slice    time.Time // when this process's time slice began
	released time.Time
	yielded  bool      // the key was released for other processes
	returns  bool      // the last time, this process asked for the key again at once
	looked   time.Time // when a release last looked for other processes that wait
	awaited  bool      // it found one
}

const generation = 1024 // keys remembered, at least

// Granted notes a grant of key with token, requested at now.
func (b *budget) Granted(key string, token int64, now time.Time, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.find(key)
	if s == nil {
		s = b.fresh()
	}
	if s.since.IsZero() || token != s.Token+1 {
		slice := now
		if now.Sub(s.released) <= soon { // or two processes would alternate, and no slice would end
			slice = s.slice
		}
		*s = keyGrants{since: now, slice: slice, returns: s.returns, looked: s.looked, awaited: s.awaited}
	}
	s.Token, s.At, s.Took, s.yielded = token, now, took, false
	s.grants++
	b.keep(key, s)
}

// Spent reports whether other processes should get key now, and begins to count anew if so.
func (b *budget) Spent(key string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.find(key)
	if s == nil || s.grants < b.Grants || now.Sub(s.since) < b.For {
		return false
	}
	s.grants, s.since = 0, now
	b.keep(key, s)
	return true
}

// Looked notes whether other processes waited for key when a release looked for them, at that time.
func (b *budget) Looked(key string, awaited bool, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.find(key); s != nil {
		s.looked, s.awaited = at, awaited
		b.keep(key, s)
	}
}

// soon is how soon a process asks again that is said to return at once. It bounds how much later
// the others are told of a key whose process does not return this time.
const soon = 2 * time.Millisecond

// Released notes that key was released at now. awaited says that other processes wait for it: a
// time slice that has lasted for so long then ends. returns says that it goes on, and that this
// process is likely to ask again at once, as it did the last time.
func (b *budget) Released(
	key string, now time.Time, slice time.Duration, awaited bool,
) (returns bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.find(key)
	if s == nil {
		return false
	}
	s.released = now
	over := awaited && now.Sub(s.slice) >= slice
	if over {
		s.slice = now
		s.yielded = true
	}
	b.keep(key, s)
	return s.returns && !over
}

// Left notes that the release of key has returned at now: only from then on can this process ask
// again.
func (b *budget) Left(key string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.find(key); s != nil {
		s.released = now
		b.keep(key, s)
	}
}

// Asks notes that this process asks for key at now. It reports true if this process yielded key
// within the last room.
func (b *budget) Asks(key string, now time.Time, room time.Duration) (yielded bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.find(key)
	if s == nil || s.released.IsZero() {
		return false
	}
	ago := now.Sub(s.released)
	if returns := ago <= soon; returns != s.returns {
		s.returns = returns
		b.keep(key, s)
	}
	return s.yielded && ago < room
}

// Of is what is known of key.
func (b *budget) Of(key string) keyGrants {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.find(key); s != nil {
		return *s
	}
	return keyGrants{}
}

// Over reports whether this process's time slice has lasted for d, although another process waited
// when a release last looked.
func (s keyGrants) Over(now time.Time, d time.Duration) bool {
	return s.awaited && now.Sub(s.slice) >= d
}

// Quiet reports whether the last release that has looked found no other process that waits for the
// key, less than d before now. Only then need the store not be asked: while a key is handed over,
// nothing looks.
func (s keyGrants) Quiet(now time.Time, d time.Duration) bool {
	return !s.awaited && now.Sub(s.looked) < d
}

// Holds reports whether this process was granted the key less than d before now, and has not
// released it since.
func (s keyGrants) Holds(now time.Time, d time.Duration) bool {
	return !s.At.Before(s.released) && now.Sub(s.At) < d
}

// find returns the grants of key, or nil.
func (b *budget) find(key string) *keyGrants {
	if s := b.cur[key]; s != nil {
		return s
	}
	return b.prev[key]
}

// fresh returns a record without a grant.
func (b *budget) fresh() *keyGrants {
	last := len(b.spare) - 1
	if last < 0 {
		return new(keyGrants)
	}
	s := b.spare[last]
	b.spare = b.spare[:last]
	*s = keyGrants{}
	return s
}

// keep remembers the record of a key that was used just now. Maps and records are used again,
// because a client of many keys would otherwise allocate one for each grant.
func (b *budget) keep(key string, s *keyGrants) {
	if b.cur[key] != nil {
		return
	}
	delete(b.prev, key) // before forget, which has others use what is there
	if b.cur == nil || len(b.cur) >= generation {
		b.forget()
	}
	b.cur[key] = s
}

// forget drops the records of the older generation, and begins a new one.
func (b *budget) forget() {
	for _, old := range b.prev {
		b.spare = append(b.spare, old)
	}
	clear(b.prev)
	if b.prev == nil {
		b.prev = make(map[string]*keyGrants)
	}
	b.prev, b.cur = b.cur, b.prev
}
