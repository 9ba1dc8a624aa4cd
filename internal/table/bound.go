package table

import (
	"context"
	"time"
)

const (
	// usualLimit is for a store that is told none.
	usualLimit = 30 * time.Second
	// beyond is how much longer than its TTL an acquire is tried. A grant that takes longer than the TTL is worthless, but the answer
	// that another client holds the key is not.
	beyond = time.Second
)

// until is when the caller of an acquire or a hand-over stops waiting, whatever hangs; zero for what asks for no lease.
func (t *task) until() time.Time {
	switch {
	case t.acquire.TTL > 0:
		return after(t.acquire.TTL)
	case t.handOver != nil:
		return after(t.handOver.To.TTL)
	}
	return time.Time{}
}

// bound sees that every op has an end, and returns it. Without it a call without deadline took eight tries of a statement's timeout
// each, and the wait for a lane before each of them: 70 s at a lease of 30 s.
func (s *Store) bound(op *op) time.Time {
	if op.Until.IsZero() {
		op.Until = after(s.limit)
	}
	return op.Until
}

func after(ttl time.Duration) time.Time {
	now := time.Now()
	if until := now.Add(ttl).Add(beyond); until.After(now) {
		return until
	}
	return now.Add(usualLimit) // a TTL of centuries
}

// oneAfterAnother bounds the whole of n operations that are done one after another: each by itself would have its own limit.
func (s *Store) oneAfterAnother(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	if n < 2 {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, after(s.limit))
}

// left is what remains until then, for a retry loop that takes 0 for no limit.
func left(until time.Time) time.Duration { return max(time.Nanosecond, time.Until(until)) }
