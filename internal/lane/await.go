package lane

import (
	"context"
	"sync"
	"time"
)

// alarms are stopped timers for reuse, so that a caller that waits for a lane allocates none.
var alarms = sync.Pool{New: func() any {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return t
}}

// await returns nil when the op has ended. Otherwise it returns why its caller leaves: ctx has
// ended, or Until has passed. Without that bound, a caller without deadline would wait behind every
// op that hangs before its own.
func (op *Op[T]) await(ctx context.Context) error {
	if op.Until.IsZero() {
		select {
		case <-op.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	alarm := alarms.Get().(*time.Timer)
	alarm.Reset(time.Until(op.Until))
	defer func() { alarm.Stop(); alarms.Put(alarm) }()
	select {
	case <-op.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-alarm.C:
		return ErrLate
	}
}
