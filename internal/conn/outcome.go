package conn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
)

// NotSent marks an error that came before the statement itself was sent: it has certainly not been
// applied.
type NotSent struct{ Err error }

func (e NotSent) Error() string { return e.Err.Error() }
func (e NotSent) Unwrap() error { return e.Err }

// Unsettled marks an error of a transaction that could not be rolled back either: the connection
// must be discarded. If the COMMIT was sent, the outcome is unknown; otherwise nothing can have
// been applied.
type Unsettled struct {
	Err        error
	Committing bool
}

func (e Unsettled) Error() string { return e.Err.Error() }
func (e Unsettled) Unwrap() error { return e.Err }

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
