package conn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
)

// Told is what a caller is told of err, with which something ended that had ctx and a bound of
// rowlock's: that of a deadline only if ctx has one that has passed.
func Told(ctx context.Context, err error) error {
	end, ends := ctx.Deadline()
	if !errors.Is(err, context.DeadlineExceeded) || ends && !time.Now().Before(end) {
		return err
	}
	late := fmt.Errorf("%w: %v", adapter.ErrLate, err)
	if errors.As(err, new(NotSent)) {
		return NotSent{Err: late}
	}
	return late
}
