package lane

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowlockdb/rowlock/internal/retry"
)

const (
	// The pauses between two connections that fail. The longest, with its jitter, is shorter than the
	// time for which an op is tried again, so that a call which meets the end of an outage gets
	// through.
	firstRest, longestRest, restJitter = 5 * time.Millisecond, 150 * time.Millisecond, 0.3
	// healthy is how long nothing must have failed before the pauses begin anew. While a server takes
	// no writes, reads go on to succeed.
	healthy = 4 * longestRest
)

// redial spaces the connections of a set while they fail. Without it each try of each caller is a
// connection: 64 callers made hundreds a second to a server that had just been promoted, or that
// had turned read-only.
type redial struct {
	hurt atomic.Bool // something has failed; false costs an op nothing

	mu     sync.Mutex
	pauses *backoff.ExponentialBackOff
	pause  time.Duration
	until  time.Time // after a failure
	turn   time.Time // until then it is another's turn, unless it renews
	failed time.Time
	last   error
}

// rests returns why no connection is tried now: the last failure. nil lets its caller try, and no
// other before that has ended or the pause has passed again. A renewal waits for no other's turn:
// callers with little time would take one turn after the other, and connect in none.
func (r *redial) rests(renews bool) error {
	if !r.hurt.Load() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.Before(r.until) || !renews && now.Before(r.turn) {
		return r.last
	}
	if !renews {
		r.turn = now.Add(r.pause)
	}
	return nil
}

// fail notes that a connection could not be made, or leads to a server that takes no writes.
func (r *redial) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pause, r.failed, r.last = 0, time.Now(), err
	if r.pauses == nil { // the first is free: one cut connection is no outage
		r.pauses = retry.Growing(firstRest, longestRest, restJitter)
	} else {
		r.pause = r.pauses.NextBackOff()
	}
	r.until = r.failed.Add(r.pause)
	r.hurt.Store(true)
}

// connected lets other lanes connect too.
func (r *redial) connected() {
	if !r.hurt.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until, r.turn = time.Time{}, time.Time{}
}

// succeeded notes that an op has ended on a connection that is still good.
func (r *redial) succeeded() {
	if !r.hurt.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.failed) >= healthy {
		r.pauses, r.last = nil, nil
		r.hurt.Store(false)
	}
}
