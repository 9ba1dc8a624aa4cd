package wlocktest

import (
	"time"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// operate judges by the node's own copy and clock.
func (n *Node) operate(k, from *conn, g *group, q *frame.Request) {
	if q.Type == frame.Get {
		n.get(k, g, q)
		return
	}
	late := n.view(g)[q.Key].of(q.Kind, q.Owner)
	dead := n.expired(g, q.Key)
	a := &frame.Response{}
	switch q.Type {
	case frame.Acquire:
		a = n.acquire(from, g, q)
	case frame.Release:
		a.Status = n.release(g, q)
		if dead && late != nil && late.token == q.Token {
			a.Status = frame.Success
		}
	case frame.Renew:
		a.Status = n.renew(from, g, q)
	}
	n.answer(k, q, a)
	switch {
	case q.Type == frame.Watch:
		n.watch(from, g, q)
	case q.Type != frame.Acquire && (dead || q.Type == frame.Release):
		n.promote(g, q.Key)
	}
}

func (n *Node) get(k *conn, g *group, q *frame.Request) {
	a := &frame.Response{Status: frame.Deleted}
	r := n.view(g)[q.Key]
	if l := r.of(q.Kind, q.Owner); l.lives(n.c.now()) && r.shared == (q.Kind.Type == 1) {
		a = &frame.Response{Token: l.token, Owner: l.owner}
	}
	n.answer(k, q, a)
}

func (n *Node) acquire(from *conn, g *group, q *frame.Request) *frame.Response {
	held := n.view(g)[q.Key].of(q.Kind, q.Owner)
	again := held != nil && held.owner == q.Owner
	if !again && !n.free(g, q.Key, q.Kind, q.Owner) || !again && n.overtaken(g, q) {
		if q.Blocked != 1 {
			return &frame.Response{Status: frame.Occupied}
		}
		n.enqueue(from, g, q, q.Expire)
		return &frame.Response{Status: frame.Wait}
	}
	var seen int64
	if again {
		seen = held.token
	}
	l := n.granted(g, q.Owner, time.Duration(q.Expire)*time.Millisecond, from)
	if !n.put(g, q.Key, q.Kind, l, seen) {
		return &frame.Response{Status: frame.Error}
	}
	if !again && q.Kind == frame.Mutex {
		n.updated(g, q.Key, l)
	}
	return &frame.Response{Token: l.token, Owner: q.Owner}
}

func (n *Node) granted(g *group, o frame.Owner, ttl time.Duration, from *conn) *lock {
	return &lock{owner: o, token: g.next(), expiry: n.c.now().Add(ttl), from: from}
}

// free reports whether another's lock is in the way. A writer may read too.
func (n *Node) free(g *group, key string, kind frame.Kind, owner frame.Owner) bool {
	r := n.view(g)[key]
	switch {
	case r == nil:
		return true
	case kind == frame.Reader:
		return r.writer == nil || r.writer.owner == owner
	}
	return r.writer == nil && len(r.readers) == 0
}

// overtaken reports whether a waiter goes first, which is served now.
func (n *Node) overtaken(g *group, q *frame.Request) bool {
	switch first := n.best(g, q.Key); {
	case first == nil:
		return false
	case q.Kind == frame.Mutex:
		if first.weight < q.Weight {
			return false
		}
		n.promote(g, q.Key)
		return true
	case q.Kind == frame.Reader && !n.writerWaits(g, q.Key):
		return false
	}
	n.promote(g, q.Key)
	return true
}

func (n *Node) release(g *group, q *frame.Request) frame.Status {
	switch l := n.view(g)[q.Key].of(q.Kind, q.Owner); {
	case l == nil:
		return frame.Deleted
	case l.owner != q.Owner:
		return frame.ChangedOwner
	case l.token != q.Token:
		return frame.TokenError
	}
	if !n.remove(g, q.Key, q.Kind, q.Owner, q.Token) {
		return frame.Error
	}
	return frame.Success
}

func (n *Node) renew(from *conn, g *group, q *frame.Request) frame.Status {
	l := n.view(g)[q.Key].of(q.Kind, q.Owner)
	switch {
	case l == nil:
		return frame.Deleted
	case l.owner != q.Owner:
		return frame.ChangedOwner
	case l.token != q.Token:
		return frame.TokenError
	case q.Expire == 0: // only the connection changes
		l.from = from
		return frame.Success
	}
	end := n.c.now().Add(time.Duration(q.Expire) * time.Millisecond)
	if !n.extend(g, q.Key, q.Kind, &lock{owner: q.Owner, token: q.Token, expiry: end, from: from}) {
		return frame.Error
	}
	return frame.Success
}
