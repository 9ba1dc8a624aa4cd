package optimistic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// RetryOption changes one call of Retry or Modify.
type RetryOption func(*retrying)

type retrying struct {
	tries          int
	first, longest time.Duration
}

// Tries is how often f is called at most. Default 20; less than 1 counts as 1.
func Tries(n int) RetryOption { return func(r *retrying) { r.tries = max(1, n) } }

// Pauses are the mean of the first pause and of the longest. Each is twice the one before, and up
// to half longer or shorter by chance, so that callers that have met do not meet again. Default 5
// ms and 1 s.
func Pauses(first, longest time.Duration) RetryOption {
	return func(r *retrying) { r.first, r.longest = max(1, first), max(1, first, longest) }
}

// Retry calls f until it returns another error than ErrConflict or lease.ErrBusy, at most Tries
// times, with a pause in between. f must begin anew each time, with a read in a new transaction.
// Retry returns the last error, with the number of tries if there were several. If ctx ends, it
// returns at once, with ctx's error and the last.
func Retry(ctx context.Context, f func(ctx context.Context) error, opts ...RetryOption) error {
	r := retrying{tries: 20, first: 5 * time.Millisecond, longest: time.Second}
	for i, o := range opts {
		if o == nil {
			return fmt.Errorf("%w: optimistic.Retry: option %d is nil; leave it out", lease.ErrConfig, i+1)
		}
		o(&r)
	}
	if f == nil {
		return fmt.Errorf("%w: optimistic.Retry needs a function", lease.ErrConfig)
	}
	if err := isnil.Context("optimistic.Retry", ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	tries, last := 0, error(nil)
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		tries++
		last = f(ctx)
		if last != nil && !errors.Is(last, ErrConflict) && !errors.Is(last, lease.ErrBusy) {
			return struct{}{}, backoff.Permanent(last)
		}
		return struct{}{}, last
	}, backoff.WithBackOff(retry.Growing(r.first, r.longest, 0.5)),
		backoff.WithMaxTries(uint(r.tries)), backoff.WithMaxElapsedTime(0))
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && !errors.Is(last, ctx.Err()):
		return fmt.Errorf("%w after %d tries: %w", ctx.Err(), tries, last)
	case tries > 1:
		return fmt.Errorf("after %d tries: %w", tries, last)
	}
	return last
}
