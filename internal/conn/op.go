package conn

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
)

// Kind orders what is pending: a lower kind goes first.
type Kind uint8

const (
	// Renew goes before everything, because a late renewal loses a lock.
	Renew Kind = iota
	// Release goes before Acquire, because acquires wait for it.
	Release
	// Acquire may wait.
	Acquire
	kinds
)

// Op is one piece of work. T is what Run makes of it: request and answer.
type Op[T any] struct {
	Kind Kind
	Body T
	// Run executes the op by itself. Its error becomes Err.
	Run func(ctx context.Context, s *Session, op *Op[T]) error
	// Alone keeps the op out of batches.
	Alone bool
	// Until is when its caller stops waiting for it; the zero value means never. A context with
	// this deadline would do the same and cost every call six allocations.
	Until time.Time
	// Patience is how long it may take on its connection, if that is more than Config.Timeout: one
	// that waits for a row must wait until the server says that it is locked.
	Patience time.Duration
	// Err is why it failed; valid once Do has returned nil.
	Err error

	begun bool // Go was called
	again bool // Together has deferred it
	state atomic.Uint32
	done  chan struct{}
}

// The life of an op: pending → running → finished, unless its caller has left: pending → withdrawn,
// running → orphaned.
const (
	pending = iota
	running
	finished
	withdrawn
	orphaned
)

// NewOp returns an op to give to Do.
func NewOp[T any](kind Kind, body T, run func(context.Context, *Session, *Op[T]) error) *Op[T] {
	return &Op[T]{Kind: kind, Body: body, Run: run, done: make(chan struct{}, 1)}
}

// Recycle prepares an op, whose Do has returned nil, for another Do, and for a Run that its user
// sets. No connection has it any more.
func (op *Op[T]) Recycle(kind Kind, body T) {
	op.Kind, op.Body, op.Err = kind, body, nil
	op.Alone, op.begun, op.again, op.Until = false, false, false, time.Time{}
	op.state.Store(pending)
}

// start claims the op for a connection; false if its caller has withdrawn it.
func (op *Op[T]) start() bool { return op.state.CompareAndSwap(pending, running) }

// finish notifies the caller, if it has not left.
func (op *Op[T]) finish() {
	if op.state.CompareAndSwap(running, finished) {
		op.done <- struct{}{}
	}
}

// Again has an op that was in a batch of Together, and that was certainly not applied, run once
// more: next, and alone if alone is true. Its caller can still withdraw it.
func (op *Op[T]) Again(alone bool) { op.again, op.Alone = true, alone }

// putBack makes a running op pending once more; false if its caller has left meanwhile.
func (op *Op[T]) putBack() bool {
	op.again = false
	return op.state.CompareAndSwap(running, pending)
}

// abandon is called when the caller leaves. It returns the state the op was left in. Finished means
// the answer came just before.
func (op *Op[T]) abandon() uint32 {
	if op.state.CompareAndSwap(pending, withdrawn) {
		return withdrawn
	}
	if op.state.CompareAndSwap(running, orphaned) {
		return orphaned
	}
	return finished
}

// alarms are stopped timers for reuse, so that a caller that waits for a connection allocates none.
var alarms = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// await returns nil when the op has ended. Otherwise it returns why its caller leaves: ctx has
// ended, or Until has passed. Without that bound, a caller without deadline would wait behind every
// op that hangs before its own.
func (op *Op[T]) await(ctx context.Context) error {
	var late <-chan time.Time
	if !op.Until.IsZero() {
		alarm := alarms.Get().(*time.Timer)
		alarm.Reset(time.Until(op.Until))
		defer func() { alarm.Stop(); alarms.Put(alarm) }()
		late = alarm.C
	}
	select {
	case <-op.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-late:
		return adapter.ErrLate
	}
}
