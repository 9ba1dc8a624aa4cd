package conn

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// The pauses between two connections that fail. The longest, with its jitter, is a part of the
	// time for which an op is tried again, so that a call which meets the end of an outage gets
	// through.
	firstRest, longestRest, restJitter = 5 * time.Millisecond, 40 * time.Millisecond, 0.3
	// healthy is how long nothing must have failed before the pauses begin anew. While a server
	// takes no writes, reads go on to succeed.
	healthy = 10 * longestRest
)

// redial spaces the connections of a set while they fail. Else each try of each caller is one: 64
// callers made hundreds a second to a server just promoted, or turned read-only. It goes without
// internal/retry, because dialects import this package, and must not import that.
type redial struct {
	hurt atomic.Bool // something has failed; false costs an op nothing

	mu     sync.Mutex
	pause  time.Duration // after the next failure; 0: there is none after the first
	until  time.Time
	failed time.Time
}

// rest waits until the pause after the last failure is over. The ops of a connection wait together,
// and are answered together when its connection fails. To answer them at once instead would use up
// their tries before the pause is over.
func (r *redial) rest(ctx context.Context) error {
	if !r.hurt.Load() {
		return nil
	}
	r.mu.Lock()
	pause := time.Until(r.until)
	r.mu.Unlock()
	if pause <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause):
		return nil
	}
}

// fail notes that a connection could not be made, or leads to a server that takes no writes.
func (r *redial) fail() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = time.Now()
	jitter := 1 + restJitter*(2*rand.Float64()-1)
	r.until = r.failed.Add(time.Duration(float64(r.pause) * jitter)) // one cut connection is no outage
	r.pause = max(firstRest, min(2*r.pause, longestRest))
	r.hurt.Store(true)
}

// connected lets other connections connect too.
func (r *redial) connected() {
	if !r.hurt.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Time{}
}

// succeeded notes that an op has ended on a connection that is still good.
func (r *redial) succeeded() {
	if !r.hurt.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.failed) >= healthy {
		r.pause = 0
		r.hurt.Store(false)
	}
}
