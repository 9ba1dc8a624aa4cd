package table

import (
	"context"
	"sync"
	"time"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

type op = conn.Op[call]

const (
	// usualLimit bounds calls of a store whose options have no limit.
	usualLimit = 30 * time.Second
	// beyond is how much longer than its TTL an acquire is tried. A grant that takes longer
	// than the TTL is worthless, but the answer that another client holds the key is useful.
	beyond = time.Second
)

func after(ttl time.Duration) time.Time {
	now := time.Now()
	if until := now.Add(ttl).Add(beyond); ttl > 0 && until.After(now) {
		return until
	}
	return now.Add(usualLimit) // a TTL of centuries, or none
}

// call is a task on a pinned connection, with its answer.
type call struct {
	engine *engine
	task
	answer
	outcome sqlstore.Outcome // in the batch
}

// task is what the store asks of a pinned connection: one of the hot operations, or any function of
// a session. A task never changes after a pinned connection has it, so that it can be sent again
// whatever the outcome was.
type task struct {
	// run is what does it alone; see run.go.
	run      func(context.Context, *conn.Session, *op) error
	acquire  lease.AcquireRequest
	renew    []lease.RenewRequest
	release  lease.Lease
	handOver *lease.HandOver  // answered as an acquire
	within   *sqlstore.Within // of a slot that is handed over
	other    func(context.Context, *conn.Session) error
	patience time.Duration // see conn.Op
}

type answer struct {
	acquired lease.Acquired
	renewed  []lease.Renewed
	released lease.Released
}

// key is the key of a call that can be batched.
func (c *call) key(kind conn.Kind) string {
	switch {
	case c.handOver != nil:
		return c.handOver.From.Key
	case kind == conn.Release:
		return c.release.Key
	}
	return c.acquire.Key
}

// change is the call as an item of a batch.
func (c *call) change(kind conn.Kind) sqlstore.Change {
	switch {
	case c.handOver != nil:
		to := &c.handOver.To
		return sqlstore.Change{From: c.handOver.From, To: to.Owner, Note: to.Note, TTL: to.TTL}
	case kind == conn.Release:
		return sqlstore.Change{From: c.release}
	}
	return changeOf(&c.acquire)
}

// changeOf is a request as an item of a batch.
func changeOf(r *lease.AcquireRequest) sqlstore.Change {
	return sqlstore.Change{From: lease.Lease{Key: r.Key}, To: r.Owner, Note: r.Note, TTL: r.TTL}
}

// settle answers the call by the outcome of its item. It returns false if that is no answer.
func (c *call) settle(kind conn.Kind, a sqlstore.Applied) bool {
	c.outcome = a.Outcome
	switch {
	case a.Outcome == sqlstore.Done && kind == conn.Release && c.handOver == nil:
		c.released = lease.Released{Awaited: a.Awaited, Looked: a.Looked}
	case a.Outcome == sqlstore.Done:
		c.acquired = lease.Acquired{Granted: true, Token: a.Token}
	case a.Outcome == sqlstore.Held:
		c.acquired = lease.Acquired{Holder: a.Holder}
	case a.Outcome == sqlstore.Gone:
		c.acquired, c.released = lease.Acquired{}, lease.Released{Gone: true}
	default:
		return false
	}
	return true
}

// used keeps finished operations for reuse, because an operation is a large part of what a call
// allocates.
var used = sync.Pool{New: func() any { return conn.NewOp(conn.Acquire, call{}, nil) }}

// begin makes an operation that can be batched, unless the task is an unknown function. One of
// several begins at once, so that they can be batched. One alone has nothing to batch with, and Do
// may find a connection to run it on without a change of goroutines.
func (e *engine) begin(several bool, kind conn.Kind, t task) *op {
	op := e.newOp(kind, t)
	if several {
		e.connections.Go(op) // a closed set does not begin it, and conclude says so
	}
	return op
}

// newOp makes an operation. Its Until is when its caller stops waiting, even if the database hangs:
// it is counted from now, and not from the op's place in a long batch. Without an end, a call
// without deadline took eight tries of a statement's timeout each, and the wait for a connection
// before each: 70 s at a lease of 30 s.
func (e *engine) newOp(kind conn.Kind, t task) *op {
	op := used.Get().(*op)
	op.Recycle(kind, call{engine: e, task: t})
	op.Run, op.Patience = t.run, t.patience
	limit := max(e.limit, t.patience)
	switch {
	case t.other != nil:
		op.Run, op.Alone = runOther, true
	case t.acquire.TTL > 0:
		limit = t.acquire.TTL
	case t.handOver != nil:
		limit = t.handOver.To.TTL
	}
	op.Until = after(limit)
	return op
}
