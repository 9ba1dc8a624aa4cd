package wlocktest

import (
	"math"
	"slices"
	"time"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

const (
	// life is how long an entry stays without being sent again, and brief what a lock lasts that
	// an entry of a watch is granted.
	life  = time.Minute
	brief = 10 * time.Second
)

// What an event says but for frame.Acquired.
const (
	updated      int32 = 1
	released     int32 = 2
	expired      int32 = 3
	writeExpired int32 = 113
	readExpired  int32 = 123
)

// waiter is an entry of a queue, in its master's memory.
type waiter struct {
	from     *conn
	owner    frame.Owner
	id       int64
	kind     frame.Kind
	watch    int32
	weight   int32
	ttl      time.Duration
	deadline time.Time
	sent     time.Time
}

func (n *Node) enqueue(from *conn, g *group, q *frame.Request, expire int32) {
	w := &waiter{
		from: from, owner: q.Owner, id: q.WatchID, kind: q.Kind, weight: q.Weight, sent: n.c.now(),
		ttl: time.Duration(expire) * time.Millisecond,
	}
	w.deadline = w.sent.Add(min(math.MaxInt64/2, time.Duration(min(q.Timeout, 1<<40))*time.Millisecond))
	if q.Type == frame.Watch {
		w.watch, w.ttl = q.Watch, min(w.ttl, brief)
	}
	list := g.queues[q.Key]
	at := slices.IndexFunc(list, func(o *waiter) bool { return o.owner == w.owner && o.id == w.id })
	if at >= 0 {
		list[at] = w // it keeps its place
		return
	}
	g.queues[q.Key] = append(list, w)
}

// waiting drops what has ended, without a word.
func (n *Node) waiting(g *group, key string) []*waiter {
	now := n.c.now()
	list := slices.DeleteFunc(g.queues[key], func(w *waiter) bool {
		return !w.from.alive() || !w.deadline.After(now) || now.Sub(w.sent) > life
	})
	if g.queues[key] = list; len(list) == 0 {
		delete(g.queues, key)
	}
	return list
}

// best is the heaviest waiter for a mutex, and of a read-write lock the first.
func (n *Node) best(g *group, key string) (first *waiter) {
	for _, w := range n.waiting(g, key) {
		wants := w.watch == 0 || w.watch == 2
		if wants && (first == nil || w.kind == frame.Mutex && w.weight > first.weight) {
			first = w
		}
	}
	return first
}

func (n *Node) writerWaits(g *group, key string) bool {
	return slices.ContainsFunc(n.waiting(g, key), func(w *waiter) bool { return w.kind == frame.Writer && w.watch != 1 })
}

// promote grants a free key to its waiter, and a read-write lock to all waiters that can have it.
func (n *Node) promote(g *group, key string) {
	if g.master != n.seq {
		return // the queue is in the master's memory
	}
	w := n.best(g, key)
	for w != nil && n.free(g, key, w.kind, w.owner) {
		l := n.granted(g, w.owner, w.ttl, w.from)
		n.put(g, key, w.kind, l, 0)
		n.leave(g, key, func(o *waiter) bool { return o.owner == w.owner && o.watch != 1 }, frame.Acquired, l.token, w.owner)
		if w.kind == frame.Mutex {
			n.updated(g, key, l)
			return
		}
		w = n.best(g, key)
	}
	if r := n.view(g)[key]; w == nil && (r == nil || r.writer == nil) {
		for _, w := range n.waiting(g, key) {
			n.event(g, w.from, key, w.owner, frame.Lock{Token: -1, WatchID: w.id, Event: released})
		}
		delete(g.queues, key)
	}
}

// updated tells those that only watch of a new owner.
func (n *Node) updated(g *group, key string, l *lock) {
	n.leave(g, key, func(o *waiter) bool { return o.watch == 1 }, updated, l.token, l.owner)
}

// leave tells waiters, which then are none any more.
func (n *Node) leave(g *group, key string, which func(*waiter) bool, what int32, token int64, owner frame.Owner) {
	g.queues[key] = slices.DeleteFunc(n.waiting(g, key), func(w *waiter) bool {
		if !which(w) {
			return false
		}
		n.event(g, w.from, key, owner, frame.Lock{Token: token, WatchID: w.id, Event: what})
		return true
	})
}

// watch adds an entry, and looks at once whether there is something to tell.
func (n *Node) watch(from *conn, g *group, q *frame.Request) {
	n.enqueue(from, g, q, q.Expire)
	l := n.view(g)[q.Key].of(frame.Kind{}, q.Owner)
	switch {
	case l == nil:
		n.promote(g, q.Key)
	case q.Kind == frame.Mutex && l.token > q.Token:
		n.leave(g, q.Key, func(*waiter) bool { return true }, updated, l.token, l.owner)
	}
}
