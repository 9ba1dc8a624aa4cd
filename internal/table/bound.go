package table

import (
	"context"
)

// bound gives an op an end. Without one, a call without deadline took eight
// tries of a statement's timeout each, and the wait for a lane before each: 70 s at a lease of 30
// s.
func (e *engine) bound(op *op) {
	if op.Until.IsZero() {
		op.Until = after(e.limit)
	}
}

// oneAfterAnother bounds n operations that run one after another as a whole, because each alone has
// its own limit.
func (e *engine) oneAfterAnother(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	if n < 2 {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, after(e.limit))
}
