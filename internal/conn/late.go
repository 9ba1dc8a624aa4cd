package conn

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrLate is the error of what has taken too long by a bound of rowlock's. It is that of no
// context: a caller would take it for that of its own deadline.
var ErrLate = errors.New(
	"no answer in time: the database or its pool has stopped, is cut off or is overloaded")

// told is what a caller is told of err, with which something ended that was to end at end: nothing
// of a context that is not the caller's.
func told(ctx context.Context, end time.Time, err error) error {
	deadline, _ := ctx.Deadline()
	if ctx.Err() != nil || deadline.Equal(end) || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	late := fmt.Errorf("%w: %v", ErrLate, err)
	if errors.As(err, new(NotSent)) {
		return NotSent{Err: late}
	}
	return late
}
