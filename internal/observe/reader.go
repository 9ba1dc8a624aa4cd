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
	pending map[slot]told // the last of each
	order   []slot        // those of pending, oldest first
	dropped int
	err     error
	news    chan struct{}
}

// told is an event, or a row that cannot be read.
type told struct {
	lease.Event
	bad error // why not
}

// slot has one event that waits. A forced release has one of its own, because the grant to the next
// holder usually comes with the same listing.
type slot struct {
	key         string
	forced, bad bool
}

func (r *reader) wants(key string) bool { return strings.HasPrefix(key, r.prefix) }

// tell leaves an event for the reader. An earlier event of the key is replaced.
func (r *reader) tell(e lease.Event) { r.add(told{Event: e}) }

// tellBad leaves a key for the reader whose row cannot be read.
func (r *reader) tellBad(key string, why error) { r.add(told{lease.Event{Key: key}, why}) }

func (r *reader) add(e told) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slot{e.Key, e.Kind == lease.EventForced, e.bad != nil}
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
	first := r.pending[r.order[0]]
	e, err = first.Event, first.bad
	delete(r.pending, r.order[0])
	r.order = r.order[1:]
	e.Skipped += r.dropped
	r.dropped = 0
	return e, err, true
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

func eventOf(kind lease.EventKind, r *lease.Record) lease.Event {
	e := lease.Event{Kind: kind, Key: r.Key, Token: r.Token}
	e.Identity, e.Note = lease.SplitNote(r.Note)
	if r.Held {
		e.Remaining = max(0, r.Remaining) // a database may read the clock once more after it has compared
	}
	return e
}
