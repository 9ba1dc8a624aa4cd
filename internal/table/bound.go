package table

import (
	"context"
	"time"
)

// bound gives every op an end, and returns it. Without one, a call without deadline took eight
// tries of a statement's timeout each, and the wait for a lane before each: 70 s at a lease of 30
// s.
func (e *engine) bound(op *op) time.Time {
	if op.Until.IsZero() {
		op.Until = after(e.limit)
	}
	return op.Until
}

// oneAfterAnother bounds n operations that run one after another as a whole, because each alone has
// its own limit.
func (e *engine) oneAfterAnother(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	if n < 2 {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, after(e.limit))
}

// left returns the time until then, for a retry loop that takes 0 for no limit.
func left(until time.Time) time.Duration { return max(time.Nanosecond, time.Until(until)) }
