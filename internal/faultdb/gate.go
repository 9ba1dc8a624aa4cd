package faultdb

import (
	"context"
	"sync"
	"time"
)

// Gate holds operations until a test releases them, and tells the test that one has arrived. It takes the place of
// the sleep that hopes a goroutine has got far enough by now.
type Gate struct {
	arrived chan Op
	open    chan struct{}
	once    sync.Once

	mu   sync.Mutex
	late int        // operations sent late that the server has not finished
	done *sync.Cond // one of them is finished
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	g := &Gate{arrived: make(chan Op, 1), open: make(chan struct{})}
	g.done = sync.NewCond(&g.mu)
	return g
}

// Arrived delivers every operation that comes to the gate while it is closed, each once.
func (g *Gate) Arrived() <-chan Op { return g.arrived }

// Release opens the gate for good; to release it twice is harmless. A test that ends without doing so leaves whoever
// waits at the gate there, and database/sql with it.
func (g *Gate) Release() { g.once.Do(func() { close(g.open) }) }

// Wait returns when the server has executed everything that was sent late through this gate. Release it first, and not
// before something was sent: what nobody has sent yet, nobody can wait for.
func (g *Gate) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.late > 0 {
		g.done.Wait()
	}
}

// count counts the operations that were sent late. A WaitGroup would not let one be sent while Wait has found none.
func (g *Gate) count(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.late += n
	g.done.Broadcast()
}

// waiter holds an operation back, at most until ctx ends, and returns the error of a context that ended first.
type waiter interface {
	wait(ctx context.Context, op Op) error
}

func (g *Gate) wait(ctx context.Context, op Op) error {
	select {
	case <-g.open: // asked alone first: an open gate announces nobody
		return nil
	default:
	}
	// An arrival nobody has taken yet holds the next one up, who would wait here in any case. So none is ever dropped.
	select {
	case g.arrived <- op:
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause is a waiter for a length of time.
type pause time.Duration

func (p pause) wait(ctx context.Context, _ Op) error {
	timer := time.NewTimer(time.Duration(p))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// hold waits if there is anything to wait for.
func hold(ctx context.Context, w waiter, op Op) error {
	if w == nil {
		return nil
	}
	return w.wait(ctx, op)
}
