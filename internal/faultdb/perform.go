package faultdb

import (
	"context"
	"database/sql/driver"
)

// site is where, and how thoroughly, an operation is to be run. The connection is not always the one the caller holds:
// an operation sent late runs on what the caller's connection was before it was cut.
type site struct {
	conn *conn
	// toEnd: the server must have finished when run returns. A query reads its rows to the last.
	toEnd bool
}

// perform runs one operation on c under the fault chosen for it. All faults happen here, their parts in the order in
// which they are written; what differs between operations is in run alone. The result travels by return value, because
// run may go on after perform has returned.
func perform[T any](ctx context.Context, c *conn, op Op, run func(context.Context, site) (T, error)) (T, error) {
	var nothing T
	if c.dead {
		return nothing, driver.ErrBadConn
	}
	op.N = c.from.ops.Add(1)
	f := c.from.inj.Inject(op)

	if err := hold(ctx, f.before, op); err != nil {
		c.cut()
		return nothing, err
	}
	switch f.cut {
	case cutBeforeSend:
		c.cut()
		return nothing, f.report()
	case cutSentLate:
		sendLate(ctx, c.detach(), f.late, op, run)
		return nothing, f.report()
	}

	result, err := run(ctx, site{conn: c, toEnd: f.keepsReply()})
	if lost := hold(ctx, f.after, op); lost != nil {
		c.cut()
		return nothing, lost
	}
	if f.cut == cutBeforeReply {
		c.cut()
		return nothing, f.report()
	}
	return result, err
}

// sendLate runs the operation on c, which nobody else holds any more, when the gate opens, and closes c.
func sendLate[T any](ctx context.Context, c *conn, g *Gate, op Op, run func(context.Context, site) (T, error)) {
	ctx = context.WithoutCancel(ctx) // the statement is out of the caller's reach
	g.count(1)
	go func() {
		defer g.count(-1)
		defer c.cut()
		_ = g.wait(ctx, op)                         // cannot fail: this context never ends
		_, _ = run(ctx, site{conn: c, toEnd: true}) // nobody is left to be told
	}()
}
