package bidq

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/lease"
)

// relay is how processes pass a key that changes hands all the time: they queue in the server, one
// of them has the turn, and the others do not bid. To wake the next one costs the server one
// session, however many wait. A process has turns for one key at a time.
//
// A turn is a hint and no lock: a process without turns, or one that polls, may get the key in
// between, and a turn that is stuck leaves the others to their polls.
type relay struct {
	q      *Queue
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	on     atomic.Bool // there is a key: most calls look no further

	mu      sync.Mutex
	stopped bool
	muted   time.Time // until when no turns are asked for
	key     string    // of the turns; "": there are none
	queued  bool      // the process stands in the server's queue, or has the turn
	orderly bool      // this process attempts the key only during its slice
	want    chan struct{}
	turn    *turn     // nil: it is not this process's turn
	ended   time.Time // when the last turn ended, or when the process began to queue
	pace    pace

	left    time.Time // when this process last gave the key up
	returns bool      // it then asked for the key again at once
	last    int64     // the token of the last grant to this process
	alien   time.Time // when another process was last seen to have had the key
	granted time.Time // when the key was last granted, as a poll has read it
	kept    time.Time // when this process last polled to count the others
	keeps   int       // how often it has
	unturned
}

const (
	// muteTurns is for how long a process does without turns after a failure.
	muteTurns = time.Minute
	// forever is how long it does without turns that there never will be.
	forever time.Duration = 1 << 60
	// idleTurns is how long a process that no longer asks for the key remembers that it has turns.
	idleTurns = time.Second
	// keepTurns is how often a process that has turns polls all the same, which keeps its
	// registration and counts the others. At first it does so more often, because others come.
	keepTurns = time.Second
	// lastTurn bounds how long Close waits for a turn that was asked for, because servers log a
	// wait that is canceled as an error.
	lastTurn = 500 * time.Millisecond
)

func (r *relay) start(q *Queue) {
	r.q = q
	r.ctx, r.cancel = context.WithCancel(context.Background())
}

func (r *relay) stop() {
	r.mu.Lock()
	r.stopped = true
	r.finish(false)
	if r.want != nil {
		r.asks() // which ends a wait for callers
	}
	r.mu.Unlock()
	late := time.AfterFunc(lastTurn, r.cancel)
	defer late.Stop()
	r.wg.Wait()
	r.cancel()
}

// lock locks r if there are turns for key, and otherwise reports false.
func (r *relay) lock(key string) bool {
	if !r.on.Load() {
		return false
	}
	r.mu.Lock()
	if r.key == key {
		return true
	}
	r.mu.Unlock()
	return false
}

// enter begins to take turns for key, unless there are turns for another.
func (r *relay) enter(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.key != "" || r.stopped || time.Now().Before(r.muted) || !r.q.hints.Wakes() {
		return
	}
	r.on.Store(true)
	r.key, r.queued, r.orderly, r.returns = key, true, false, true
	r.want = make(chan struct{}, 1)
	r.alien, r.left, r.keeps, r.pace = time.Now(), time.Time{}, 0, pace{}
	r.ended, r.unturned = r.alien, unturned{}
	r.wg.Go(func() { r.run(key) })
}

// run takes turns until none are wanted, or until they fail.
func (r *relay) run(key string) {
	var err error
	for more := true; more; {
		err = r.q.store.Turns(r.ctx, key, func() bool { return r.take(key) })
		more = err == nil && r.wanted()
	}
	if stopped := r.leave(err); stopped {
		return
	}
	r.q.hints.Renew(key)
	r.q.poller.Soon(key) // which registers this process as one that can be woken
	r.q.local.Resume(key)
}

// leave ends the turns of the key.
func (r *relay) leave(err error) (stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.on.Store(false)
	r.key, r.queued = "", false
	r.q.store.Defers("")
	switch {
	case errors.Is(err, lease.ErrUnsupported):
		r.muted = time.Now().Add(forever)
	case err != nil || r.useless():
		r.muted = time.Now().Add(muteTurns)
	}
	return r.stopped
}

// wanted waits until the process asks for the key again. It reports false if it does not.
func (r *relay) wanted() bool {
	want, gone := r.away()
	if gone {
		return false
	}
	idle := time.NewTimer(idleTurns)
	defer idle.Stop()
	select {
	case <-want:
	case <-idle.C:
		return false
	case <-r.ctx.Done():
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued = !r.stopped
	return r.queued
}

// away notes that this process does not stand in the server's queue. gone says that it is not to
// come back: it has left, and no other process was granted the key for a while.
func (r *relay) away() (want <-chan struct{}, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone = r.stopped || r.useless() || !r.queued && time.Since(r.alien) > idleTurns
	r.queued = false
	return r.want, gone
}
