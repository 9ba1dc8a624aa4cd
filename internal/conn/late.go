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

// Told is what a caller is told of err, with which something ended that had ctx and a bound of
// rowlock's: that of a deadline only if ctx has one that has passed.
func Told(ctx context.Context, err error) error {
	end, ends := ctx.Deadline()
	if !errors.Is(err, context.DeadlineExceeded) || ends && !time.Now().Before(end) {
		return err
	}
	late := fmt.Errorf("%w: %v", ErrLate, err)
	if errors.As(err, new(NotSent)) {
		return NotSent{Err: late}
	}
	return late
}
