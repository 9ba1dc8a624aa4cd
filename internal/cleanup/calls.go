package cleanup

import (
	"context"
	"fmt"
	"sync"
)

// Calls counts the calls that may leave a lease behind, so that closing can wait for the last of
// them. Make it with NewCalls.
type Calls struct {
	mu      sync.Mutex
	n       int
	closing bool
	done    chan struct{} // closed when no call is left and none is let in
}

// NewCalls returns a counter without calls.
func NewCalls() *Calls { return &Calls{done: make(chan struct{})} }

// Enter counts a call. It reports false once Drain was called: the caller must then do nothing.
func (c *Calls) Enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.n++
	}
	return !c.closing
}

// Leave ends a call that has entered. The call has told the orphan cleaner of what it may leave
// behind.
func (c *Calls) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n--; c.closing && c.n == 0 {
		close(c.done)
	}
}

// Drain lets no more calls in, and returns when the last has left. It fails when ctx ends before.
// Call it once.
func (c *Calls) Drain(ctx context.Context) error {
	c.mu.Lock()
	if c.closing = true; c.n == 0 {
		close(c.done)
	}
	c.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("rowlock: close: a call goes on; what it is granted yet expires: %w", ctx.Err())
	}
}
