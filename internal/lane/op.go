package lane

import (
	"sync/atomic"
	"time"
)

// Kind orders what is pending: a lower kind goes first.
type Kind uint8

const (
	// Renew goes before everything: a late renewal loses a lock.
	Renew Kind = iota
	// Release goes before Acquire: it is what acquires wait for.
	Release
	// Acquire may wait.
	Acquire
	kinds
)

// Op is one piece of work. T is what the set's Run makes of it: request and answer.
type Op[T any] struct {
	Kind Kind
	Body T
	// Alone keeps it from being run together with others.
	Alone bool
	// Until is when its caller stops waiting for it; the zero value means never. A context with this deadline would do the same
	// and cost every call six allocations.
	Until time.Time
	// Err is why it failed; valid once Do has returned nil.
	Err error

	begun bool // Go was called
	again bool // Run has put it off
	state atomic.Uint32
	done  chan struct{}
}

// The life of an op: pending → running → finished, unless its caller has gone: pending → withdrawn, running → orphaned.
const (
	pending = iota
	running
	finished
	withdrawn
	orphaned
)

// NewOp returns an op to give to Do.
func NewOp[T any](kind Kind, body T) *Op[T] {
	return &Op[T]{Kind: kind, Body: body, done: make(chan struct{}, 1)}
}

// Recycle makes an op, whose Do has returned nil, good for another Do. No lane knows of it any more.
func (op *Op[T]) Recycle(kind Kind, body T) {
	op.Kind, op.Body, op.Err = kind, body, nil
	op.Alone, op.begun, op.again, op.Until = false, false, false, time.Time{}
	op.state.Store(pending)
}

// start claims the op for a lane; false if its caller has withdrawn it.
func (op *Op[T]) start() bool { return op.state.CompareAndSwap(pending, running) }

// finish tells the caller, if there is one still.
func (op *Op[T]) finish() {
	if op.state.CompareAndSwap(running, finished) {
		op.done <- struct{}{}
	}
}

// Again has an op that Run was given with others, and that certainly has not been applied, run once more: next, and if so wished alone.
// Its caller can still withdraw it.
func (op *Op[T]) Again(alone bool) { op.again, op.Alone = true, alone }

// putBack makes a running op pending once more; false if its caller has left meanwhile, and nobody wants it any more.
func (op *Op[T]) putBack() bool {
	op.again = false
	return op.state.CompareAndSwap(running, pending)
}

// abandon is the caller leaving: it returns what state it left the op in. Finished means the answer came just before.
func (op *Op[T]) abandon() uint32 {
	if op.state.CompareAndSwap(pending, withdrawn) {
		return withdrawn
	}
	if op.state.CompareAndSwap(running, orphaned) {
		return orphaned
	}
	return finished
}
