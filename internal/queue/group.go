package queue

import "slices"

// group is one waiter that wants one of several keys, whichever is released first. It has a member
// in the queue of each, and all of them share Signal and News: a release of any key at the head of
// whose queue it stands wakes it, and it bids for all those keys at once. It is one bidder in all
// queues: no key is handed to it while it bids, and only one at a time, because a second one would
// have to be given up.
type group[W, G any] struct {
	// Signal and News are as a Waiter's.
	Signal chan signalOf[G]
	News   chan struct{}

	members  []*localWaiter[W, G]
	attempts bool // it bids, or was woken to bid
	claimed  bool // one of the keys is being handed to it
}

// JoinAny puts a waiter at the end of the queues of keys. want is what it wants of each. first says
// that it is the first in one of them at least: then it bids at once. A bidder reports how its bid
// ended with LostAny, WonAny or LeaveAny.
func (q *localQueues[W, G]) JoinAny(keys []string, want W, news bool) (g *group[W, G], first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	g = &group[W, G]{Signal: make(chan signalOf[G], 1)}
	if news {
		g.News = make(chan struct{}, 1)
	}
	for _, key := range keys {
		w := &localWaiter[W, G]{Key: key, Want: want, Signal: g.Signal, News: g.News, group: g}
		k := q.byKey[key]
		if k == nil {
			k = &keyQueue[W, G]{attempting: w}
			q.byKey[key] = k
			g.attempts = true
		}
		if news {
			k.watching++
		}
		k.waiters = append(k.waiters, w)
		g.members = append(g.members, w)
	}
	return g, g.attempts
}

// wake has the group bid. A signal that it has not seen yet stands for this one too.
func (g *group[W, G]) wake() {
	g.attempts = true
	select {
	case g.Signal <- signalOf[G]{}:
	default:
	}
}

// wakeGroup wakes every queue in which g stands.
func (q *localQueues[W, G]) wakeGroup(g *group[W, G]) {
	for _, w := range g.members {
		q.wake(w.Key)
	}
}

// Heads returns the keys that g may bid for: those at the head of whose queues it stands, unless
// another waiter bids for them or other processes bid first.
func (q *localQueues[W, G]) Heads(g *group[W, G]) (keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range g.members {
		k := q.byKey[w.Key]
		if k != nil && k.head() == w && !k.holding && (k.attempting == nil || k.attempting == w) {
			keys = append(keys, w.Key)
		}
	}
	return keys
}

// LostAny reports that g has bid and was granted no key. It returns the keys for which g was the
// bidder. If g was woken again meanwhile, Signal says so.
func (q *localQueues[W, G]) LostAny(g *group[W, G]) (keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := len(g.Signal) > 0
	bidding := g.attempting(q)
	for _, k := range bidding {
		again = again || k.again
		k.again = false
	}
	for _, k := range bidding {
		keys = append(keys, k.attempting.Key)
		if !again {
			k.attempting.woken, k.attempting = false, nil
		}
	}
	if g.attempts = again; again {
		g.wake()
	}
	return keys
}

// bidding returns the queues whose bidder g is.
func (g *group[W, G]) attempting(q *localQueues[W, G]) (queues []*keyQueue[W, G]) {
	for _, w := range g.members {
		if k := q.byKey[w.Key]; k != nil && k.attempting == w {
			queues = append(queues, k)
		}
	}
	return queues
}

// WonAny takes g out of all queues, because it has key. In every other queue for which it was woken
// the next waiter is. others says that others wait for key. unused are the keys for which g was
// woken and for which no waiter is left.
func (q *localQueues[W, G]) WonAny(g *group[W, G], key string) (others bool, unused []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	unused = q.leave(g, key)
	return q.byKey[key] != nil, unused
}

// LeaveAny takes g out of all queues, because it wants no key more. It passes on what woke it, as
// WonAny does, and returns a signal as Leave does.
func (q *localQueues[W, G]) LeaveAny(g *group[W, G]) (s signalOf[G], unused []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case s = <-g.Signal:
	default:
	}
	for _, w := range g.members {
		w.gone = true
	}
	return s, q.leave(g, "")
}

// leave removes all members. It hands on every wake-up but that for key. unused are the keys of
// those for which no waiter is left.
func (q *localQueues[W, G]) leave(g *group[W, G], key string) (unused []string) {
	for _, w := range g.members {
		k := q.byKey[w.Key]
		if k == nil || w.Key == key {
			q.remove(w)
			continue
		}
		woken := k.again && (k.attempting == nil || k.attempting == w) || k.attempting == w && w.woken
		bidder := q.remove(w)
		if (bidder || woken) && !q.wake(w.Key) && woken {
			unused = append(unused, w.Key)
		}
	}
	return unused
}

// AheadAny returns the key for which the fewest waiters of this process stand before g, and their
// number.
func (q *localQueues[W, G]) AheadAny(g *group[W, G]) (key string, ahead int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	ahead = -1
	for _, w := range g.members {
		k := q.byKey[w.Key]
		if k == nil {
			continue
		}
		if i := slices.Index(k.waiters, w); i >= 0 && (ahead < 0 || i < ahead) {
			key, ahead = w.Key, i
		}
	}
	if ahead < 0 {
		return g.members[0].Key, 0
	}
	return key, ahead
}
