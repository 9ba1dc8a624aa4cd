package console

import (
	"context"
	"sync"
	"time"
)

// frame is what was read for a view, and the part of the page that shows it.
type frame struct {
	data any
	html []byte
	asOf time.Time // of data
	at   time.Time // of the reading, which may have failed
	err  error
}

// reading returns what a view shows, and how many statements that took.
type reading func(ctx context.Context, v view) (*frame, int)

// rest is how many times as long as a reading took no other begins.
const rest = 9

// feed reads for all viewers: one goroutine while there are any, a statement each time that every
// has passed. Views take turns.
type feed struct {
	every time.Duration
	read  reading

	slots chan struct{} // has one for each page that is read outside of the turns

	mu      sync.Mutex
	topics  map[view]*topic
	running bool
	empty   chan struct{} // wakes the goroutine when the last viewer has left
}

// topic is a view that has viewers, or that was just read.
type topic struct {
	last    *frame
	viewers map[chan *frame]struct{}
	loading chan struct{} // closed when the reading that is under way has ended; nil if there is none
}

func newFeed(every time.Duration, read reading) *feed {
	return &feed{
		every: every, read: read, topics: make(map[view]*topic), empty: make(chan struct{}, 1),
		slots: make(chan struct{}, opening),
	}
}

// get returns what a view shows: as of the last reading, if that is not older than every. A reading
// that failed counts too, so that reloads of a page do not pile up statements that take long.
func (f *feed) get(ctx context.Context, v view) *frame {
	f.mu.Lock()
	t := f.topic(v)
	if fresh := t.last; fresh != nil && time.Since(fresh.at) < f.keeps(v, fresh) {
		f.mu.Unlock()
		return fresh
	}
	done := t.loading
	if done == nil {
		done = make(chan struct{})
		t.loading = done
		go func() {
			f.end(v, t, f.opened(v))
		}()
	}
	f.mu.Unlock()
	select {
	case <-done:
		f.mu.Lock()
		defer f.mu.Unlock()
		return t.last
	case <-ctx.Done():
		return &frame{err: ctx.Err(), at: time.Now()}
	}
}

// topic returns that of a view. It forgets those that are old and have no viewer. f.mu is held.
func (f *feed) topic(v view) *topic {
	for w, t := range f.topics {
		old := t.last != nil && time.Since(t.last.at) >= f.keeps(w, t.last)
		if w != v && old && len(t.viewers) == 0 && t.loading == nil {
			delete(f.topics, w)
		}
	}
	t := f.topics[v]
	if t == nil {
		t = &topic{viewers: make(map[chan *frame]struct{})}
		f.topics[v] = t
	}
	return t
}

// end passes a frame to the viewers. One that has not taken the last frame gets this one instead.
func (f *feed) end(v view, t *topic, fr *frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fr.data == nil && t.last != nil {
		fr.data, fr.html, fr.asOf = t.last.data, t.last.html, t.last.asOf // what was shown stays
	}
	t.last = fr
	if t.loading != nil {
		close(t.loading)
		t.loading = nil
	}
	for c := range t.viewers {
		select {
		case <-c:
		default:
		}
		c <- fr
	}
	f.topics[v] = t
}

// join adds a viewer. The first frame is the last one of other viewers, if there is one; leave ends
// them.
func (f *feed) join(v view) (frames <-chan *frame, leave func()) {
	c := make(chan *frame, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.topic(v)
	t.viewers[c] = struct{}{}
	if t.last != nil {
		c <- t.last // its turn may be seconds away
	}
	if !f.running {
		f.running = true
		go f.run()
	}
	return c, func() { f.leave(v, c) }
}

func (f *feed) leave(v view, c chan *frame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.topics[v]
	delete(t.viewers, c)
	if len(t.viewers) == 0 && t.loading == nil {
		delete(f.topics, v)
	}
	if f.watched() == 0 {
		select {
		case f.empty <- struct{}{}:
		default:
		}
	}
}

// watched is how many views have viewers. f.mu is held.
func (f *feed) watched() (n int) {
	for _, t := range f.topics {
		if len(t.viewers) > 0 {
			n++
		}
	}
	return n
}

// run reads while there are viewers.
func (f *feed) run() {
	timer := time.NewTimer(f.every)
	defer timer.Stop()
	for {
		select {
		case <-f.empty:
			if f.stop() {
				return
			}
			continue
		case <-timer.C:
		}
		began := time.Now()
		v, t, ok := f.next()
		switch {
		case !ok:
			return
		case t == nil: // a page load is reading it
			timer.Reset(f.every)
			continue
		}
		fr, statements := f.once(v)
		f.end(v, t, fr)
		took := time.Since(began)
		turns := time.Duration(max(statements, 1)) // a view without statements has its turn too
		timer.Reset(max(rest*took, turns*f.every-took))
	}
}

// stop reports whether there is no viewer: the goroutine then ends.
func (f *feed) stop() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = f.watched() > 0
	return !f.running
}

// next returns the view that was read the longest ago, and starts its reading. There is no view
// without viewers, and no topic if another is reading it.
func (f *feed) next() (oldest view, t *topic, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for v, other := range f.topics {
		if len(other.viewers) == 0 {
			continue
		}
		ok = true
		if other.loading == nil && (t == nil || other.before(t)) {
			oldest, t = v, other
		}
	}
	if !ok {
		f.running = false
		return oldest, nil, false
	}
	if t != nil {
		t.loading = make(chan struct{})
	}
	return oldest, t, true
}

func (t *topic) before(other *topic) bool {
	return t.last == nil || other.last != nil && t.last.at.Before(other.last.at)
}

// forget has the next page of a view read anew.
func (f *feed) forget(v view) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.topics[v]; t != nil && t.last != nil {
		t.last.at = time.Time{}
	}
}
