package waitq

import "slices"

// Group is one waiter that wants one of several keys, whichever is released first. It has a member
// in the queue of each, and all of them share Signal and News: a release of any key at the head of
// whose queue it stands wakes it, and it bids for all those keys at once. It is one bidder in all
// queues: no key is handed to it while it bids, and only one at a time, because a second one would
// have to be given up.
type Group[W, G any] struct {
	// Signal and News are as a Waiter's.
	Signal chan Signal[G]
	News   chan struct{}

	members []*Waiter[W, G]
	bids    bool // it bids, or was woken to bid
	claimed bool // one of the keys is being handed to it
}

// JoinAny puts a waiter at the end of the queues of keys. want is what it wants of each. first says
// that it is the first in one of them at least: then it bids at once. A bidder reports how its bid
// ended with LostAny, WonAny or LeaveAny.
func (q *Queues[W, G]) JoinAny(keys []string, want W, news bool) (g *Group[W, G], first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	g = &Group[W, G]{Signal: make(chan Signal[G], 1)}
	if news {
		g.News = make(chan struct{}, 1)
	}
	for _, key := range keys {
		w := &Waiter[W, G]{Key: key, Want: want, Signal: g.Signal, News: g.News, group: g}
		k := q.byKey[key]
		if k == nil {
			k = &queue[W, G]{bidder: w}
			q.byKey[key] = k
			g.bids = true
		}
		if news {
			k.watching++
		}
		k.waiters = append(k.waiters, w)
		g.members = append(g.members, w)
	}
	return g, g.bids
}

// wake has the group bid. A signal that it has not seen yet stands for this one too.
func (g *Group[W, G]) wake() {
	g.bids = true
	select {
	case g.Signal <- Signal[G]{}:
	default:
	}
}

// wakeGroup wakes every queue in which g stands.
func (q *Queues[W, G]) wakeGroup(g *Group[W, G]) {
	for _, w := range g.members {
		q.wake(w.Key)
	}
}

// Heads returns the keys that g may bid for: those at the head of whose queues it stands, unless
// another waiter bids for them or other processes bid first.
func (q *Queues[W, G]) Heads(g *Group[W, G]) (keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range g.members {
		k := q.byKey[w.Key]
		if k != nil && k.head() == w && !k.holding && (k.bidder == nil || k.bidder == w) {
			keys = append(keys, w.Key)
		}
	}
	return keys
}

// LostAny reports that g has bid and was granted no key. It returns the keys for which g was the
// bidder. If g was woken again meanwhile, Signal says so.
func (q *Queues[W, G]) LostAny(g *Group[W, G]) (keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	again := len(g.Signal) > 0
	bidding := g.bidding(q)
	for _, k := range bidding {
		again = again || k.again
		k.again = false
	}
	for _, k := range bidding {
		keys = append(keys, k.bidder.Key)
		if !again {
			k.bidder.woken, k.bidder = false, nil
		}
	}
	if g.bids = again; again {
		g.wake()
	}
	return keys
}

// bidding returns the queues whose bidder g is.
func (g *Group[W, G]) bidding(q *Queues[W, G]) (queues []*queue[W, G]) {
	for _, w := range g.members {
		if k := q.byKey[w.Key]; k != nil && k.bidder == w {
			queues = append(queues, k)
		}
	}
	return queues
}

// WonAny takes g out of all queues, because it has key. In every other queue for which it was woken
// the next waiter is. others says that others wait for key. unused are the keys for which g was
// woken and for which no waiter is left.
func (q *Queues[W, G]) WonAny(g *Group[W, G], key string) (others bool, unused []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	unused = q.leave(g, key)
	return q.byKey[key] != nil, unused
}

// LeaveAny takes g out of all queues, because it wants no key more. It passes on what woke it, as
// WonAny does, and returns a signal as Leave does.
func (q *Queues[W, G]) LeaveAny(g *Group[W, G]) (s Signal[G], unused []string) {
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
func (q *Queues[W, G]) leave(g *Group[W, G], key string) (unused []string) {
	for _, w := range g.members {
		k := q.byKey[w.Key]
		if k == nil || w.Key == key {
			q.remove(w)
			continue
		}
		woken := k.again && (k.bidder == nil || k.bidder == w) || k.bidder == w && w.woken
		bidder := q.remove(w)
		if (bidder || woken) && !q.wake(w.Key) && woken {
			unused = append(unused, w.Key)
		}
	}
	return unused
}

// AheadAny returns the key for which the fewest waiters of this process stand before g, and their
// number.
func (q *Queues[W, G]) AheadAny(g *Group[W, G]) (key string, ahead int) {
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
