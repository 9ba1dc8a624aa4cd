package wlocktest

import (
	"maps"
	"time"

	"github.com/rowlockdb/rowlock/wlock/internal/frame"
)

// group is a log: what it has decided, and what its master alone has in memory.
type group struct {
	id      int32
	version int64 // grows when keys migrate
	counter int64
	master  int // 0: none is known
	records records
	queues  map[string][]*waiter
}

func (g *group) next() int64 {
	g.counter++
	return g.version<<48 + g.counter
}

type records map[string]*record

func (r records) clone() records {
	copied := records{}
	for key, one := range r {
		copied[key] = one.clone()
	}
	return copied
}

// record is a key's state: a mutex is a writer.
type record struct {
	shared  bool // it is a read-write lock
	writer  *lock
	readers map[frame.Owner]*lock
}

func (r *record) clone() *record {
	copied := &record{shared: r.shared, readers: make(map[frame.Owner]*lock)}
	if r.writer != nil {
		w := *r.writer
		copied.writer = &w
	}
	for o, l := range r.readers {
		one := *l
		copied.readers[o] = &one
	}
	return copied
}

func (r *record) all() (list []*lock) {
	if r == nil {
		return nil
	}
	if r.writer != nil {
		list = append(list, r.writer)
	}
	for l := range maps.Values(r.readers) {
		list = append(list, l)
	}
	return list
}

// of returns the lock that a request is about: a reader's is its own.
func (r *record) of(kind frame.Kind, owner frame.Owner) *lock {
	switch {
	case r == nil:
		return nil
	case kind == frame.Reader:
		return r.readers[owner]
	}
	return r.writer
}

type lock struct {
	owner  frame.Owner
	token  int64
	expiry time.Time
	from   *conn // is told when it expires
}

func (l *lock) lives(now time.Time) bool { return l != nil && l.expiry.After(now) }

// apply changes the log, and with it the copy of a node that is behind. It returns what the log
// says.
func (n *Node) apply(g *group, change func(records) bool) bool {
	if !change(g.records) {
		return false
	}
	if n.behind != nil {
		change(n.behind[g.id])
	}
	return true
}

// view is what the node knows.
func (n *Node) view(g *group) records {
	if n.behind != nil {
		return n.behind[g.id]
	}
	return g.records
}

// put grants, unless the log has a mutex with a newer token than the node has seen.
func (n *Node) put(g *group, key string, kind frame.Kind, l *lock, seen int64) bool {
	return n.apply(g, func(r records) bool {
		if r[key] == nil {
			r[key] = &record{shared: kind.Type == 1, readers: make(map[frame.Owner]*lock)}
		}
		one := *l
		switch at := r[key]; {
		case kind == frame.Reader:
			at.readers[l.owner] = &one
		case at.writer != nil && at.writer.token > seen:
			return false
		default:
			at.writer = &one
		}
		return true
	})
}

// remove names the token alone, and nothing checks an expiry again.
func (n *Node) remove(g *group, key string, kind frame.Kind, owner frame.Owner, token int64) bool {
	return n.apply(g, func(r records) bool {
		l := r[key].of(kind, owner)
		if l == nil {
			return true
		}
		if l.token != token {
			return false
		}
		if kind == frame.Reader {
			delete(r[key].readers, owner)
		} else {
			r[key].writer = nil
		}
		if len(r[key].all()) == 0 {
			delete(r, key)
		}
		return true
	})
}

// extend makes a lock again that the log does not have, if it ends within a minute.
func (n *Node) extend(g *group, key string, kind frame.Kind, l *lock) bool {
	now := n.c.now()
	return n.apply(g, func(r records) bool {
		at := r[key].of(kind, l.owner)
		switch {
		case at == nil && l.expiry.Before(now.Add(time.Minute)):
			if r[key] == nil {
				r[key] = &record{shared: kind.Type == 1, readers: make(map[frame.Owner]*lock)}
			}
			one := *l
			if kind == frame.Reader {
				r[key].readers[l.owner] = &one
			} else {
				r[key].writer = &one
			}
			return true
		case at == nil || at.token != l.token:
			return false
		}
		at.expiry, at.from = l.expiry, l.from
		return true
	})
}

// expired deletes what has expired by this node's copy, and tells the owners.
func (n *Node) expired(g *group, key string) (some bool) {
	now, r := n.c.now(), n.view(g)[key]
	for _, l := range r.all() {
		if l.lives(now) {
			continue
		}
		some = true
		kind, what := frame.Kind{}, expired
		switch {
		case r.shared && l == r.writer:
			kind, what = frame.Writer, writeExpired
		case r.shared:
			kind, what = frame.Reader, readExpired
		}
		n.event(g, l.from, key, l.owner, frame.Lock{Token: -1, WatchID: -1, Event: what})
		if !n.remove(g, key, kind, l.owner, l.token) {
			delete(n.behind[g.id], key) // the node goes on as if it had been deleted
		}
	}
	return some
}
