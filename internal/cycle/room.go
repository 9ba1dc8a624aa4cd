package cycle

import (
	"context"
	"sync"
	"time"
)

// Room has the keys that calls have unlocked after a cycle was ended with them. A process that
// unlocks a key gets it sooner again than any other, which must be woken or polls: a call that
// begins again at once would lock it first, and make the same cycle once more.
type Room struct {
	mu   sync.Mutex
	left map[string]time.Time
}

// Make leaves key to other processes for d.
func (r *Room) Make(key string, d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = make(map[string]time.Time)
	}
	now := time.Now()
	for k, until := range r.left {
		if now.After(until) {
			delete(r.left, k)
		}
	}
	r.left[key] = now.Add(d)
}

// Leave waits until all of keys may be asked for, or ctx or the client ends.
func (r *Room) Leave(ctx context.Context, keys []string, closed <-chan struct{}) {
	r.mu.Lock()
	var until time.Time
	for _, key := range keys {
		if u := r.left[key]; u.After(until) {
			until = u
		}
	}
	r.mu.Unlock()
	if !time.Now().Before(until) {
		return
	}
	left := time.NewTimer(time.Until(until))
	defer left.Stop()
	select {
	case <-left.C:
	case <-ctx.Done():
	case <-closed:
	}
}
