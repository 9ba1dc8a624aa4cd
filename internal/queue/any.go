package queue

import (
	"context"
	"slices"
	"time"
)

// anyWaiter is one call that wants one of several keys, whichever is released first. It has a
// member in the queue of each, and all of them share its signal: a release of any key at the head
// of whose queue it stands wakes it, and it asks in one statement for all those keys. A later call
// does not overtake an earlier one. It asks as one in all queues: no key is handed to it while it
// asks, and only one at a time, because a second one would have to be given up.
type anyWaiter struct {
	q      *Attempts
	call   *Call
	signal chan signal
	news   chan struct{}

	members []*waiter
	asks    bool // it asks, or was woken to ask
	claimed bool // one of the keys is being handed to it
}

func (q *Attempts) joinAny(ctx context.Context, c *Call) (Waiter, bool, error) {
	a := &anyWaiter{q: q, call: c, signal: make(chan signal, 1)}
	if q.cfg.Asker.Watches(c) {
		a.news = make(chan struct{}, 1)
	}
	first, spent := q.keys.joinAny(a, time.Now())
	switch {
	case !first:
		return a, false, nil
	case spent: // of all keys; as long as one is not spent, the call may ask
		if err := q.makeRoom(ctx, a, c.Keys[:1]); err != nil {
			q.cfg.Asker.Discard(ctx, a.Leave(ctx).Grant)
			return nil, false, err
		}
	}
	return a, true, nil
}

// joinAny puts a waiter at the end of the queues of its call's keys. first says that it is the
// first in one of them at least: then it asks at once, and reports how that ended with lostAny,
// wonAny or leaveAny. spent says that this process has had enough of all keys.
func (s *keys) joinAny(a *anyWaiter, now time.Time) (first, spent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range a.call.Keys {
		w := &waiter{q: a.q, call: a.call, key: key, signal: a.signal, news: a.news, any: a}
		a.asks = s.enter(w) || a.asks
		a.members = append(a.members, w)
	}
	spent = a.asks
	for _, w := range a.members {
		spent = spent && s.find(w.key).spent(&s.policy, now)
	}
	return a.asks, spent
}

// wake has the call ask. A signal that it has not seen yet stands for this one too.
func (a *anyWaiter) wake() {
	a.asks = true
	select {
	case a.signal <- signal{}:
	default:
	}
}

// Attempt asks under fresh owners for the keys at the head of whose queues the call stands.
func (a *anyWaiter) Attempt(ctx context.Context) (Grants, error) {
	keys := a.q.keys.heads(a)
	if len(keys) == 0 { // other processes ask first
		return Grants{}, a.q.cfg.Asker.Held(a)
	}
	return a.q.cfg.Asker.Ask(ctx, a.call, a.call.Some(keys))
}

// heads returns the keys that a may ask for: those at the head of whose queues it stands, unless
// another waiter asks for them or other processes ask first.
func (s *keys) heads(a *anyWaiter) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.asks = true // also of its own accord, after an outage: a hand-over would be a second key
	for _, w := range a.members {
		k := s.use(w.key)
		if k.head() == w && !k.holding && (k.attempting == nil || k.attempting == w) {
			keys = append(keys, w.key)
		}
	}
	return keys
}

// Lost stays in all queues. It has those keys polled for which it was to find out whether they are
// free: the others are polled already.
func (a *anyWaiter) Lost(_ context.Context, err error) (again bool, failed error) {
	for _, key := range a.q.keys.lostAny(a) {
		_, held := inTheWay(err, key)
		a.q.watch(key, observedOf(held))
		a.q.keys.moved(key)
	}
	return false, nil
}

// lostAny reports that a has asked and was granted no key. It returns the keys that it was to ask
// for. If it was woken again meanwhile, its signal says so.
func (s *keys) lostAny(a *anyWaiter) (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := len(a.signal) > 0
	var asked []*record
	for _, w := range a.members {
		if k := s.use(w.key); k.attempting == w {
			asked, keys = append(asked, k), append(keys, w.key)
			again = again || k.again
			k.again = false
		}
	}
	for _, k := range asked {
		if !again {
			k.attempting.woken, k.attempting = false, nil
		}
	}
	if a.asks = again; again {
		a.wake()
	}
	return keys
}

// Awaits is a key that a poll has found expired, or else the one for which the fewest waiters stand
// before this one.
func (a *anyWaiter) Awaits() string {
	for _, key := range a.call.Keys {
		if o := a.q.poller.Last(key); o.Polled && o.Expired {
			return key
		}
	}
	return a.q.keys.nearest(a).key
}

// nearest is the member before which the fewest waiters of this process stand.
func (s *keys) nearest(a *anyWaiter) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	nearest, ahead := a.members[0], -1
	for _, w := range a.members {
		if i := slices.Index(s.use(w.key).waiters, w); i >= 0 && (ahead < 0 || i < ahead) {
			nearest, ahead = w, i
		}
	}
	return nearest
}

func (a *anyWaiter) Signals() (<-chan signal, <-chan struct{}) { return a.signal, a.news }

// Position counts the waiters of this process before the nearest key, and tells of the holder of
// the key that Awaits names.
func (a *anyWaiter) Position() (Position, bool) {
	return a.q.position(a.Awaits(), a.q.keys.nearest(a)), true
}

// Seen is what the last poll has read of the key that Awaits names, and whether readers hold any:
// they may come and go for ever while another holder keeps that key.
func (a *anyWaiter) Seen() Seen {
	seen := a.q.seen(a.Awaits())
	seen.Shared = slices.ContainsFunc(a.call.Keys, func(key string) bool { return a.q.seen(key).Shared })
	return seen
}

// Won leaves all queues. What else was to be found free is left to the next waiters, of other
// processes if there are none here.
func (a *anyWaiter) Won(_ context.Context, g Grants) {
	key := g.Each[0].Req.Key
	others, unused := a.q.keys.wonAny(a, key)
	if others {
		a.q.poller.Own(key, observed{Note: a.call.Want.Note, Remaining: a.call.Want.TTL})
		a.q.keys.moved(key)
	}
	a.q.notify.PassOn(unused...)
}

// wonAny takes a out of all queues, because it has key, whose next release will wake another
// process. In every other queue for which it was woken the next waiter is. others says that others
// wait for key. unused are the keys for which a was woken and for which no waiter is left.
func (s *keys) wonAny(a *anyWaiter, key string) (others bool, unused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	unused = s.removeAny(a, key)
	k := s.use(key)
	k.cancelWake()
	return len(k.waiters) > 0, unused
}

// Leave leaves all queues, because the call wants no key more.
func (a *anyWaiter) Leave(context.Context) signal {
	sig, unused := a.q.keys.leaveAny(a)
	a.q.notify.PassOn(unused...)
	return sig
}

// leaveAny passes on what woke a, as wonAny does, and returns a signal as leave does.
func (s *keys) leaveAny(a *anyWaiter) (sig signal, unused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case sig = <-a.signal:
	default:
	}
	for _, w := range a.members {
		w.gone = true
	}
	return sig, s.removeAny(a, "")
}

// removeAny removes all members. It hands on every wake-up but that for key. unused are the keys of
// those for which no waiter is left.
func (s *keys) removeAny(a *anyWaiter, key string) (unused []string) {
	for _, w := range a.members {
		k := s.use(w.key)
		if w.key == key {
			k.remove(w)
			continue
		}
		woken := k.again && (k.attempting == nil || k.attempting == w) || k.attempting == w && w.woken
		asking := k.remove(w)
		if (asking || woken) && !k.wake() && woken {
			unused = append(unused, w.key)
		}
	}
	return unused
}
