package observe

import (
	"context"
	"iter"
	"strings"
	"sync"

	"github.com/rowlockdb/rowlock/lease"
)

// most is how many keys a reader may be behind. The oldest are dropped then, and counted.
const most = 4096

// reader is one caller that watches. The poller never waits for it.
type reader struct {
	prefix string
	fresh  bool // has not been told yet what is held; guarded by the poller

	mu      sync.Mutex
	pending map[slot]lease.Event // the last of each
	order   []slot               // those of pending, oldest first
	dropped int
	err     error
	news    chan struct{}
}

// slot has one event that waits. A forced release has one of its own, because the grant to the next
// holder usually comes with the same listing.
type slot struct {
	key    string
	forced bool
}

func newReader(prefix string) *reader {
	return &reader{
		prefix: prefix, fresh: true, pending: make(map[slot]lease.Event), news: make(chan struct{}, 1),
	}
}

func (r *reader) wants(key string) bool { return strings.HasPrefix(key, r.prefix) }

// tell leaves an event for the reader. An earlier event of the key is replaced.
func (r *reader) tell(e lease.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slot{e.Key, e.Kind == lease.EventForced}
	if before, behind := r.pending[at]; behind {
		e.Skipped = before.Skipped + 1
	} else {
		r.order = append(r.order, at)
	}
	r.pending[at] = e
	if len(r.order) > most {
		r.dropped += 1 + r.pending[r.order[0]].Skipped
		delete(r.pending, r.order[0])
		r.order = r.order[1:]
	}
	r.wake()
}

// fail leaves an error for the reader: no listing since the last event.
func (r *reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	r.wake()
}

func (r *reader) wake() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// next returns the oldest event, or an error once the events are read.
func (r *reader) next() (e lease.Event, err error, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.order) == 0 {
		err, r.err = r.err, nil
		return e, err, err != nil
	}
	e = r.pending[r.order[0]]
	delete(r.pending, r.order[0])
	r.order = r.order[1:]
	e.Skipped += r.dropped
	r.dropped = 0
	return e, nil, true
}

// all yields what the reader is told until ctx or the client ends.
func (r *reader) all(ctx context.Context, closed <-chan struct{}) iter.Seq2[lease.Event, error] {
	return func(yield func(lease.Event, error) bool) {
		for ctx.Err() == nil {
			if e, err, ok := r.next(); ok {
				if !yield(e, err) {
					return
				}
				continue
			}
			select {
			case <-r.news:
			case <-closed:
				return
			case <-ctx.Done():
			}
		}
	}
}
