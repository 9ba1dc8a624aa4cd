// Package late keeps the end of a bound of rowlock's from being taken for that of a caller's ctx.
package late

import (
	"context"
	"errors"
	"time"
)

// Told is what a caller with ctx is told of err. It is that of a deadline only if ctx has one that
// has passed. Otherwise it is all else that it was, and as in place of the deadline, unless nil.
func Told(ctx context.Context, err, as error) error {
	end, ends := ctx.Deadline()
	if !errors.Is(err, context.DeadlineExceeded) || ends && !time.Now().Before(end) {
		return err
	}
	return inner{err, as}
}

// inner is an error of which the deadline is none of its caller's. It has no Unwrap, which would
// show the deadline.
type inner struct{ of, as error }

func (i inner) Error() string { return i.of.Error() }

func (i inner) Is(target error) bool {
	return target == i.as || target != context.DeadlineExceeded && errors.Is(i.of, target)
}

func (i inner) As(target any) bool { return errors.As(i.of, target) }
