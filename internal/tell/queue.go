// Package tell calls what users have given, a Logger and hooks, on a goroutine of its own: one that
// blocks there, as on a full pipe, must hold up no lease, no loop and no Close.
package tell

import (
	"sync"
	"time"
)

// most is how many calls wait for one that does not return. It is more than twice the locks that an
// outage may end at once, and so no healthy Logger misses a line of it.
const most = 1 << 16

// Queue makes calls one after the other, in the order in which they were added. Its goroutine lasts
// while there are any, so that a queue without calls needs no end. The zero Queue is ready; its
// exported fields are set before the first Add. A nil Queue has no calls.
type Queue struct {
	// Through is called on the queue's goroutine with how many calls were dropped, when calls get
	// through again. May be nil.
	Through func(dropped int64)

	mu      sync.Mutex
	calls   []func()
	running bool
	over    bool
	idle    chan struct{} // closed when no call is left; nil if no caller waits for that
	dropped int64
	told    int64 // of dropped
}

// Add has f called after all that were added before. It returns at once. It drops f if too many
// wait, or after Stop.
func (q *Queue) Add(f func()) {
	q.mu.Lock()
	if q.over || len(q.calls) >= most {
		q.dropped++
		q.mu.Unlock()
		return
	}
	q.calls = append(q.calls, f)
	starts := !q.running
	q.running = true
	q.mu.Unlock()
	if starts {
		go q.run()
	}
}

// run makes the calls. A call that ends its goroutine, as t.FailNow does, ends no other call.
func (q *Queue) run() {
	whole := false
	defer func() {
		if !whole {
			go q.run()
		}
	}()
	for f := q.next(); f != nil; f = q.next() {
		f()
		q.through()
	}
	whole = true
}

// next returns the next call, or nil when the goroutine must end.
func (q *Queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) == 0 {
		q.calls, q.running = nil, false
		if q.idle != nil {
			close(q.idle)
			q.idle = nil
		}
		return nil
	}
	f := q.calls[0]
	q.calls[0] = nil
	q.calls = q.calls[1:]
	return f
}

// through tells of what was dropped before a call returned.
func (q *Queue) through() {
	q.mu.Lock()
	n := q.dropped - q.told
	q.told = q.dropped
	over := q.over
	q.mu.Unlock()
	if n > 0 && !over && q.Through != nil {
		q.Through(n)
	}
}

// Dropped returns how many calls were dropped.
func (q *Queue) Dropped() int64 {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Flush waits until no call is left, or for so long.
func (q *Queue) Flush(patience time.Duration) {
	if q == nil {
		return
	}
	q.mu.Lock()
	if !q.running {
		q.mu.Unlock()
		return
	}
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	idle := q.idle
	q.mu.Unlock()
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-idle:
	case <-wait.C:
	}
}

// Stop waits as Flush does, and drops what is left. The goroutine then ends with the call that it
// is in.
func (q *Queue) Stop(patience time.Duration) {
	if q == nil {
		return
	}
	q.Flush(patience)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	q.dropped += int64(len(q.calls))
	q.calls = nil
}

// Later2 and those after it return a function that has f called by q, or nil if f is nil.
func Later2[A, B any](q *Queue, f func(A, B)) func(A, B) {
	return unless(f == nil, func(a A, b B) { q.Add(func() { f(a, b) }) })
}

// Later3 is for functions of three arguments.
func Later3[A, B, C any](q *Queue, f func(A, B, C)) func(A, B, C) {
	return unless(f == nil, func(a A, b B, c C) { q.Add(func() { f(a, b, c) }) })
}

// Later4 is for functions of four arguments.
func Later4[A, B, C, D any](q *Queue, f func(A, B, C, D)) func(A, B, C, D) {
	return unless(f == nil, func(a A, b B, c C, d D) { q.Add(func() { f(a, b, c, d) }) })
}

// Later5 is for functions of five arguments.
func Later5[A, B, C, D, E any](q *Queue, f func(A, B, C, D, E)) func(A, B, C, D, E) {
	return unless(f == nil, func(a A, b B, c C, d D, e E) { q.Add(func() { f(a, b, c, d, e) }) })
}

func unless[F any](missing bool, later F) (f F) {
	if !missing {
		f = later
	}
	return f
}
