package queue

import (
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// keys are the records of the keys for which calls of this process wait, or which it had lately.
type keys struct {
	policy
	mu        sync.Mutex
	cur, prev map[string]*record // two generations, so that keys used once are forgotten
	spare     []*record          // of keys that were
	carried   int                // records in cur that were in use when the generation began
}

// policy is what a process grants its own waiters before those of others.
type policy struct {
	// grants and lasts bound consecutive grants: other processes get the key when both are reached.
	// Without it, a process that hands over, or locks again at once, could keep the key from all
	// others for ever.
	grants int
	lasts  time.Duration
	// slice is how long a process that asks again at once keeps a key for which others wait, and then
	// how long it leaves the key to them. See slices.go.
	slice time.Duration
	// watches reports whether a call is told when its position changes. It may be nil.
	watches func(*Call) bool
}

// record is all that this process knows of one key: who waits, and for how long it has had the key.
type record struct {
	waiters    []*waiter   // the head first
	attempting *waiter     // asks for the key, or was woken to ask
	again      bool        // a signal came meanwhile, and the waiter may not see its cause
	holding    bool        // other processes ask first
	watching   int         // waiters with news
	postponed  *time.Timer // wakes another process, unless this one asks for the key first
	usage
}

// usage is a sequence of consecutive grants of one key to this process: without another process's
// between them, which the tokens show.
type usage struct {
	token lease.Token   // of the last grant
	at    time.Time     // when it was requested
	took  time.Duration // from then to its answer

	count    int // of the grants
	since    time.Time
	slice    time.Time // when this process's time slice began
	released time.Time
	yielded  bool      // the key was released for other processes
	returns  bool      // the last time, this process asked for the key again at once
	looked   time.Time // when a release last looked for other processes that wait
	awaited  bool      // it found one
}

const (
	generation = 1024 // keys remembered, at least
	// soon is how soon a process asks again that is said to return at once. It bounds how much later
	// the others are told of a key whose process does not return this time.
	soon = 2 * time.Millisecond
)

// find returns the record of key, or nil.
func (s *keys) find(key string) *record {
	if k := s.cur[key]; k != nil {
		return k
	}
	return s.prev[key]
}

// use returns the record of key, an empty one if there was none. Maps and records are used again,
// because a client of many keys would otherwise allocate one for each grant.
func (s *keys) use(key string) *record {
	if k := s.cur[key]; k != nil {
		return k
	}
	k := s.prev[key]
	delete(s.prev, key) // before forget, which has others use what is there
	if s.cur == nil || len(s.cur) >= s.carried+generation {
		s.forget()
	}
	if last := len(s.spare) - 1; k == nil && last >= 0 {
		k, s.spare = s.spare[last], s.spare[:last]
	}
	if k == nil {
		k = new(record)
	}
	s.cur[key] = k
	return k
}

// forget drops the records of the older generation that are not in use, and begins a new one.
func (s *keys) forget() {
	for key, old := range s.prev {
		if len(old.waiters) == 0 && old.postponed == nil {
			*old = record{waiters: old.waiters}
			s.spare = append(s.spare, old)
			delete(s.prev, key)
		}
	}
	if s.prev == nil {
		s.prev = make(map[string]*record)
	}
	s.prev, s.cur, s.carried = s.cur, s.prev, len(s.prev)
}

// of is what is known of the grants of key.
func (s *keys) of(key string) usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(key); k != nil {
		return k.usage
	}
	return usage{}
}

// Granted notes a grant of key with token, requested at now.
func (s *keys) Granted(key string, token lease.Token, now time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &s.use(key).usage
	if u.since.IsZero() || token != u.token+1 {
		slice := now
		if now.Sub(u.released) <= soon { // or two processes would alternate, and no slice would end
			slice = u.slice
		}
		*u = usage{since: now, slice: slice, returns: u.returns, looked: u.looked, awaited: u.awaited}
	}
	u.token, u.at, u.took, u.yielded = token, now, took, false
	u.count++
}

// spent reports whether other processes should get the key now, and counts anew if so.
func (u *usage) spent(p *policy, now time.Time) bool {
	if u.since.IsZero() || u.count < p.grants || now.Sub(u.since) < p.lasts {
		return false
	}
	u.count, u.since = 0, now
	return true
}

// asks notes that this process asks for the key at now. It reports whether the key is still left to
// the process that was woken for it.
func (u *usage) asks(p *policy, now time.Time) (yielded bool) {
	if u.released.IsZero() {
		return false
	}
	ago := now.Sub(u.released)
	u.returns = ago <= soon
	return u.yielded && ago < p.slice
}

// ends notes that the key was released at now. awaited says that other processes wait for it: a
// time slice that has lasted long enough then ends. returns says that it goes on, and that this
// process is likely to ask again at once, as it did the last time.
func (u *usage) ends(p *policy, now time.Time, awaited bool) (returns bool) {
	u.released = now
	if awaited && now.Sub(u.slice) >= p.slice {
		u.slice, u.yielded = now, true
		return false
	}
	return u.returns
}

// over reports whether this process's time slice has lasted for d, although another process waited
// when a release last looked.
func (u *usage) over(now time.Time, d time.Duration) bool { return u.awaited && now.Sub(u.slice) >= d }

// quiet reports whether the last release that has looked found no other process that waits for the
// key, less than d before now. While a key is handed over, nothing looks.
func (u *usage) quiet(now time.Time, d time.Duration) bool {
	return !u.awaited && now.Sub(u.looked) < d
}

// holds reports whether this process was granted the key less than d before now, and has not
// released it since.
func (u *usage) holds(now time.Time, d time.Duration) bool {
	return !u.at.Before(u.released) && now.Sub(u.at) < d
}

// Kept notes that this process is done with key, and can ask again only from now on. No release of
// it follows, nor does goLast, which would end the time in which other processes ask first.
func (s *keys) Kept(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(key); k != nil {
		k.released, k.holding = time.Now(), false
	}
}

// postpone has announce called with key soon, unless this process asks for it first: its next
// release will then wake another process.
func (s *keys) postpone(k *record, key string, announce func(keys ...string)) {
	k.cancelWake()
	var t *time.Timer
	t = time.AfterFunc(soon, func() {
		s.mu.Lock()
		due := k.postponed == t
		if due {
			k.postponed = nil
		}
		s.mu.Unlock()
		if due {
			announce(key)
		}
	})
	k.postponed = t
}

func (k *record) cancelWake() {
	if k.postponed != nil {
		k.postponed.Stop()
		k.postponed = nil
	}
}

// cancelWake takes back what was postponed.
func (s *keys) cancelWake(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(key); k != nil {
		k.cancelWake()
	}
}

// takePostponed returns the keys whose announcement was postponed, and takes that back.
func (s *keys) takePostponed() (due []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, generation := range []map[string]*record{s.cur, s.prev} {
		for key, k := range generation {
			if k.postponed != nil {
				due = append(due, key)
				k.cancelWake()
			}
		}
	}
	return due
}
