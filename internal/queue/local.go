package queue

import (
	"slices"
	"time"
)

// The waiters of one process stand in a queue for each key, first come, first served: the head
// alone asks for the key.

// entry says how a call begins to wait.
type entry struct {
	first   bool     // it asks at once, because no other call of this process waits
	yielded bool     // but it does not, because another process was woken for the key
	spent   []string // the keys of which this process has had enough, if others wait for them
}

// join puts w at the end of the queue of the first key that others wait for, or else of its call's
// first key: a later call does not ask before earlier ones. One that asks reports how that ended
// with lost, won or leave. alone says that no process can be woken.
func (s *keys) join(w *waiter, now time.Time, alone bool) (e entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.key = w.call.Keys[0]
	for _, key := range w.call.Keys {
		if k := s.find(key); k != nil && len(k.waiters) > 0 {
			w.key = key
			break
		}
	}
	if e.first = s.enter(w); !e.first {
		return e
	}
	for _, key := range w.call.Keys {
		if u := s.find(key); u != nil && u.spent(&s.policy, now) && !u.quiet(now, s.lasts/4) {
			e.spent = append(e.spent, key)
		}
	}
	if k := s.find(w.key); len(w.call.Keys) == 1 && len(e.spent) == 0 {
		if e.yielded = k.asks(&s.policy, now) && !alone; e.yielded {
			k.attempting = nil
			s.wait(k, w)
		} else {
			k.cancelWake()
		}
	}
	return e
}

// enter puts w at the end of the queue of its key. It reports whether w is alone there.
func (s *keys) enter(w *waiter) (first bool) {
	k := s.use(w.key)
	k.waiters = append(k.waiters, w)
	if w.news != nil {
		k.watching++
	}
	if first = len(k.waiters) == 1; first {
		k.attempting = w
	} else {
		s.wait(k, w)
	}
	return first
}

// move puts w, which has left its queue, into that of another key. It reports whether w is alone
// there.
func (s *keys) move(w *waiter, key string) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.key, w.gone = key, false
	return s.enter(w)
}

// wait gives w what wakes it. The first waiter has none before its attempt is lost, because it may
// never have to wait.
func (s *keys) wait(k *record, w *waiter) {
	if w.signal != nil {
		return
	}
	w.signal = make(chan signal, 1)
	if s.watches != nil && s.watches(w.call) {
		w.news = make(chan struct{}, 1)
		k.watching++
	}
}

// lost reports that w has asked and was not granted the key. If w was woken again meanwhile, its
// signal says so.
func (s *keys) lost(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(w.key)
	if k == nil || k.attempting != w {
		return
	}
	if len(w.signal) > 0 {
		return // it has asked of its own accord, as readers do, was woken meanwhile, and will ask again
	}
	k.attempting = nil
	s.wait(k, w)
	if k.again {
		k.wake()
	}
}

// won takes w out of its queue, because its attempt was granted. It reports whether others wait.
func (s *keys) won(w *waiter) (others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.gone = true // a hand-over to it may be under way, and fail: giveBack must not queue it again
	k := s.use(w.key)
	k.remove(w)
	return len(k.waiters) > 0
}

// leave takes w out of its queue, because it wants the key no more. If w was woken, the next waiter
// is. If the key was handed to w at this very moment, the signal says so, and w must use the grant
// or release it.
func (s *keys) leave(w *waiter) (sig signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.gone = true
	select {
	case sig = <-w.signal:
	default:
	}
	if k := s.use(w.key); k.remove(w) {
		k.wake()
	}
	return sig
}

// remove reports whether w was asking, or woken to ask. With its last waiter a queue forgets what
// it was told: the next call asks at once.
func (k *record) remove(w *waiter) (asking bool) {
	i := slices.Index(k.waiters, w)
	if i < 0 {
		return false
	}
	k.waiters = slices.Delete(k.waiters, i, i+1)
	if w.news != nil {
		k.watching--
	}
	if k.watching > 0 {
		k.notify()
	}
	asking = k.attempting == w
	if asking || len(k.waiters) == 0 {
		k.attempting, k.again = nil, false
	}
	k.holding = k.holding && len(k.waiters) > 0
	return asking
}

// wake has the head of key's queue ask. It reports whether there is one.
func (s *keys) wake(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(key)
	return k != nil && k.wake()
}

func (k *record) wake() bool {
	if len(k.waiters) == 0 {
		return false
	}
	w := k.head()
	// Without a head, the waiters that are about to leave pass it on.
	if k.again = k.attempting != nil || k.holding || w == nil; k.again {
		return true
	}
	k.attempting = w
	if w.any != nil {
		w.woken = true
		w.any.wake()
		return true
	}
	w.signal <- signal{} // has room: a waiter with a signal is the one that asks
	return true
}

// head is the first waiter but those that another key is being handed to: they will leave, or
// giveBack wakes them.
func (k *record) head() *waiter {
	for _, w := range k.waiters {
		if w.any == nil || !w.any.claimed {
			return w
		}
	}
	return nil
}

// resume ends the time in which other processes ask first, and has the head ask.
func (s *keys) resume(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(key); k != nil {
		k.holding = false
		k.wake()
	}
}

// claim takes the head out of key's queue for a hand-over, which ends with give or giveBack. It
// returns nil without a waiter, unless hand is set, if the head only asks, and while the head asks,
// because it could be granted the key twice.
//
// over says that this process has had the key for long enough, although calls of its own wait: then
// the head does not ask until resume, so that other processes ask first. A process keeps a key for
// longer that its waiters hand over: that takes one statement, and to pass the key to another
// process three.
func (s *keys) claim(key string, hand, alone bool) (w *waiter, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(key)
	if k == nil || len(k.waiters) == 0 {
		return nil, false
	}
	now := time.Now()
	if k.spent(&s.policy, now) || !alone && k.over(now, 3*s.slice) {
		k.holding = true
		return nil, true
	}
	w = k.head()
	if !hand || k.attempting != nil || k.holding || w == nil || w.asksOnly() || w.any != nil && w.any.asks {
		return nil, false
	}
	k.remove(w)
	if w.any != nil {
		w.any.claimed = true
	}
	return w, false
}

// claimInTx is claim for a hand-over by a COMMIT, which may take long: the head must want nothing
// but this key. If this process has had the key for long enough, the release finds it out anew.
func (s *keys) claimInTx(key string, alone bool) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, now := s.find(key), time.Now()
	if k == nil {
		return nil
	}
	had := k.usage
	if had.spent(&s.policy, now) || !alone && had.over(now, 3*s.slice) {
		return nil
	}
	w := k.head()
	if w == nil || k.attempting != nil || k.holding || w.any != nil || w.asksOnly() || w.call.Want.Shared {
		return nil
	}
	k.remove(w)
	return w
}

// give gives w what it was claimed for. It reports false if w has left meanwhile: the caller must
// then pass the grant on.
func (s *keys) give(w *waiter, g Grants) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.gone {
		return false
	}
	w.signal <- signal{Given: true, Grant: g}
	return true
}

// giveBack puts w back at the head of its queue after a failed hand-over, and has the head ask.
func (s *keys) giveBack(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.use(w.key)
	if !w.gone {
		k.waiters = slices.Insert(k.waiters, 0, w)
		if w.news != nil {
			k.watching++
		}
	}
	if w.any == nil {
		k.wake()
		return
	}
	w.any.claimed = false
	for _, other := range w.any.members {
		s.use(other.key).wake()
	}
}

// ahead is how many waiters of this process stand before w.
func (s *keys) ahead(w *waiter) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(w.key); k != nil {
		return max(0, slices.Index(k.waiters, w))
	}
	return 0
}

// moved tells those of key's waiters that watch that their position may have changed.
func (s *keys) moved(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(key); k != nil && k.watching > 0 {
		k.notify()
	}
}

func (k *record) notify() {
	for _, w := range k.waiters {
		if w.news == nil {
			continue
		}
		select {
		case w.news <- struct{}{}:
		default: // the last news was not read yet
		}
	}
}

// len is how many wait for key.
func (s *keys) len(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(key); k != nil {
		return len(k.waiters)
	}
	return 0
}
