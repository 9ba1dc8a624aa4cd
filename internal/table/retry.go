package table

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowlockdb/rowlock/dialect"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/lease"
)

// maxTries bounds how often one operation is tried. Deadlocks and lost connections pass in a moment; what does not is for
// the caller to see.
const (
	maxTries  = 8
	lockTries = 5 // for a row that somebody has locked: a taker is gone by then, a fence is not
)

// do runs one operation to a known outcome if that can be had: what certainly was not applied is tried again, and so is what
// may have been, because every operation is idempotent per owner: the repeated acquire finds its own row. doubtful says that
// an earlier try had an unknown outcome.
func (s *Store) do(ctx context.Context, kind lane.Kind, verb, key string, c call) (_ call, doubtful bool, _ error) {
	c, v, err := s.once(ctx, kind, c)
	if err == nil {
		return c, false, nil
	}
	if v.Class.Retry() && !final(err) {
		doubtful = v.Class == dialect.Unknown
		tries := 1
		_, retryErr := backoff.Retry(ctx, func() (struct{}, error) {
			c, v, err = s.once(ctx, kind, c)
			tries++
			doubtful = doubtful || err != nil && v.Class == dialect.Unknown && !final(err)
			if err != nil && (!v.Class.Retry() || final(err) || tries >= lockTries && errors.Is(err, dialect.ErrRowLocked)) {
				return struct{}{}, backoff.Permanent(err)
			}
			return struct{}{}, err
		}, backoff.WithBackOff(pauses()), backoff.WithMaxTries(maxTries-1), backoff.WithMaxElapsedTime(0))
		if retryErr != nil && err == nil {
			err = retryErr
		}
	}
	if err == nil {
		return c, doubtful, nil
	}
	err = s.explain(verb, key, err)
	if doubtful && !errors.Is(err, lease.ErrUnknown) {
		err = errors.Join(lease.ErrUnknown, err) // the last try is known to have failed; an earlier one may not have
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = errors.Join(err, ctx.Err())
	}
	return c, doubtful, err
}

func (s *Store) once(ctx context.Context, kind lane.Kind, c call) (call, dialect.Verdict, error) {
	op := lane.NewOp(kind, c)
	if err := s.lanes.Do(ctx, op); err != nil {
		return c, dialect.Verdict{}, err // the op is a lane's now: its body must not be read
	}
	if op.Err != nil {
		return c, dialect.Judge(s.d, op.Err), op.Err
	}
	return op.Body, dialect.Verdict{}, nil
}

// final says that nobody is left to try again for.
func final(err error) bool {
	return errors.Is(err, lane.ErrClosed) || errors.Is(err, lane.ErrWithdrawn) || errors.Is(err, lane.ErrOrphaned)
}

func pauses() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval, b.Multiplier, b.RandomizationFactor = 2*time.Millisecond, 200*time.Millisecond, 2, 0.5
	return b
}
