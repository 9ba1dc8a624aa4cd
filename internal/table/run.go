package table

import (
	"context"
	"errors"

	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/era"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// mostMerged is how many pending operations become one statement. Measured on PostgreSQL, one of a
// batch of 128 takes 8 µs and one of 512 takes 7. What arrives between two batches waits for the
// first.
const mostMerged = 512

// enough ops for a batch of its own: with so many, the fixed costs of a batch are small.
const enough = 32

// gather is how many ops another connection waits for at most, if there is another. Sessions that a
// pooler shares were not measured.
func (e *engine) gather() int {
	if e.d.Pooled() || e.d.OneWriter {
		return 0
	}
	return enough
}

// runTogether executes several ops. They are one statement and one commit, as far as that is
// simple; it defers the others, to be run alone.
func (e *engine) runTogether(ctx context.Context, session *conn.Session, ops []*op) (good bool) {
	if ops[0].Kind == conn.Renew {
		return e.reusable(e.renewTogether(ctx, session, ops))
	}
	err := e.applyTogether(ctx, session, ops)
	if e.d.Expects {
		e.expected.grants(ops...)
	}
	return e.reusable(err)
}

// good reports whether the connection can be used again on which an op ended with err.
func (e *engine) good(err error) bool { return e.reusable(err) && !era.IsUnlearned(err) }

// reusable is good for a batch. What grants runs again alone, and is refused again. Releases need
// no other connection. One that lacks a right may have a role that the application has left in it:
// another may not.
func (e *engine) reusable(err error) bool {
	if err == nil {
		return true
	}
	v := sqlstore.Judge(e.d, err)
	return v.Class.Good() && !errors.Is(v.As, lease.ErrPrivilege) && !errors.Is(v.As, lease.ErrReadOnly)
}

// These are the tasks that an op can run alone, each a fast statement of its own.

func runAcquire(ctx context.Context, session *conn.Session, op *op) error {
	e, c := op.Body.engine, &op.Body
	a, err := e.d.Acquire(ctx, session, e.strategy, c.acquire)
	if err != nil {
		a, err = e.confirmed(ctx, session, &c.acquire, a, err)
	}
	c.acquired = a
	if e.d.Expects {
		e.expected.grants(op)
	}
	return err
}

func runRelease(ctx context.Context, session *conn.Session, op *op) (err error) {
	e, c := op.Body.engine, &op.Body
	session.Process, session.Channel = e.process.alone(), e.channel
	c.released, err = e.d.Release(ctx, session, c.release)
	return err
}

func runHandOver(ctx context.Context, session *conn.Session, op *op) (err error) {
	e, c := op.Body.engine, &op.Body
	if c.within != nil {
		c.acquired, err = e.passSlot(ctx, session, c)
	} else {
		c.acquired, err = e.d.HandOver(ctx, session, *c.handOver)
	}
	if e.d.Expects {
		e.expected.grants(op)
	}
	return err
}

func runRenew(ctx context.Context, session *conn.Session, op *op) (err error) {
	op.Body.renewed, err = op.Body.engine.d.Renew(ctx, session, op.Body.renew)
	return err
}

func runOther(ctx context.Context, session *conn.Session, op *op) error {
	return op.Body.other(ctx, session)
}
