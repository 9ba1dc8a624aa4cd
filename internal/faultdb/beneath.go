package faultdb

import (
	"context"
	"fmt"
)

// Beneath runs something on the driver's own connection that the driver's interface has no word for, as the operation
// that verb and query name: "prepare", "exec" or "query". It is an execution of a prepared statement, or of several that
// are sent together, whose queries are then joined. run must read the answer to its end, and may run after Beneath has
// returned an error.
func (c *conn) Beneath(ctx context.Context, verb, query string, run func(context.Context, any) error) error {
	op := c.op(Prepare, query)
	switch verb {
	case "prepare":
	case "exec":
		op.Kind, op.Prepared = Exec, true
	case "query":
		op.Kind, op.Prepared = Query, true
	default:
		panic(fmt.Sprintf("faultdb: Beneath knows no %q", verb))
	}
	_, err := perform(ctx, c, op, func(ctx context.Context, at site) (struct{}, error) {
		return struct{}{}, run(ctx, at.conn.inner)
	})
	return err
}
