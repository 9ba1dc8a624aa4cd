package queue

import (
	"context"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// leaders are the calls that are about to make a reader group of a free key, one for each key: a
// single flight. Other calls of this client that find the key free wait for the end of its first
// attempt, and then join its group: otherwise each would ask, lose, and find the group at its next
// try only.
type leaders struct {
	mu  sync.Mutex
	now map[string]leading
}

// leading is what the calls for one key know of its leaders. A call that minded those of other keys
// would ask for a held key again and again, and never wait in the queue.
type leading struct {
	calls, ended int // without calls, how many leaders have ended is forgotten
	by           *leader
}

type leader struct {
	all  *leaders
	key  string
	done chan struct{}
}

// count counts calls more for key, and returns how many of its leaders have ended.
func (f *leaders) count(key string, calls int) (ended int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now == nil {
		f.now = make(map[string]leading)
	}
	of := f.now[key]
	of.calls += calls
	if f.now[key] = of; of.calls == 0 {
		delete(f.now, key)
	}
	return of.ended
}

// lead makes the caller the leader for key, unless another call is, or the key is not free. It
// returns again if a leader has ended since ended was counted: what was read before says nothing.
func (f *leaders) lead(key string, free bool, ended int) (mine, other *leader, again bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	of := f.now[key]
	if of.by != nil || of.ended != ended || !free {
		return nil, of.by, of.ended != ended
	}
	of.by = &leader{all: f, key: key, done: make(chan struct{})}
	f.now[key] = of
	return of.by, nil, false
}

// end lets the others go on. It may be called more than once, and for nil.
func (f *leader) end() {
	if f == nil {
		return
	}
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if of := f.all.now[f.key]; of.by == f {
		f.all.now[f.key] = leading{calls: of.calls, ended: of.ended + 1}
		close(f.done)
	}
}

// freeError says that a key is free, to a call that may not make a reader group of it now.
type freeError struct{ *lease.HeldError }

func (e *freeError) Unwrap() error { return e.HeldError }

// shareFirst tries to join the reader groups of a call's keys. If the only key is free, the call
// becomes its leader, and the error is as of a held key. A leader holds the key alone for a moment:
// nor is that a reason for other calls to wait in the queue.
func (a *Asker) shareFirst(ctx context.Context, c *Call) (Grants, *leader, error) {
	for {
		ended := a.leaders.count(c.Keys[0], 0)
		g, err := a.share(ctx, c, false)
		if err == nil || !passing(err) || len(c.Keys) != 1 || ctx.Err() != nil {
			return g, nil, err
		}
		_, free := err.(*freeError)
		mine, other, again := a.leaders.lead(c.Keys[0], free, ended)
		switch {
		case other != nil:
			select {
			case <-other.done:
			case <-ctx.Done():
			case <-a.Closed:
				return Grants{}, nil, Closed(c.Keys)
			}
		case !again:
			return Grants{}, mine, err
		}
	}
}
