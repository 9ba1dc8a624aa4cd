package table

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// maxTries bounds how often one operation is tried. Deadlocks and lost connections pass in a moment; what does not is for
// the caller to see.
const (
	maxTries  = 8
	lockTries = 5 // for a row that somebody has locked: a taker is gone by then, a fence is not
)

// do runs one operation to a known outcome if that can be had: what certainly was not applied is tried again, and so is what
// may have been, because every operation is idempotent per owner: the repeated acquire finds its own row, and confirms it. doubtful says that
// an earlier try had an unknown outcome.
func (s *Store) do(ctx context.Context, kind lane.Kind, verb, key string, t task) (_ answer, doubtful bool, _ error) {
	return s.conclude(ctx, verb, key, newOp(kind, t))
}

// used keeps operations that are over, to be used again: one is a large part of what a call allocates.
var used = sync.Pool{New: func() any { return lane.NewOp(lane.Acquire, call{}) }}

// newOp makes an operation that can be merged, unless nothing is known of what it does.
func newOp(kind lane.Kind, t task) *op {
	op := used.Get().(*op)
	op.Recycle(kind, call{task: t})
	op.Until = t.until() // from now on, not from when its turn comes in a batch of many
	op.Alone = t.other != nil
	return op
}

// beginAll gives the lanes everything at once, so that it can be merged. There is nil for what is not to be done.
func (s *Store) beginAll(ops []*op) {
	if len(ops) == 1 {
		return // nothing to merge, and do may find a lane to run it on without a change of goroutines
	}
	for _, op := range ops {
		if op != nil {
			s.bound(op)    // before a lane has it
			s.lanes.Go(op) // on a closed set it is not begun, and conclude says so
		}
	}
}

// conclude is do for an op that may have been begun.
func (s *Store) conclude(ctx context.Context, verb, key string, op *op) (_ answer, doubtful bool, _ error) {
	until := s.bound(op)
	v, err := s.once(ctx, op)
	if err == nil {
		answer := op.Body.answer
		op.Body = call{}
		used.Put(op)
		return answer, false, nil
	}
	if v.Class.Retry() && !final(err) {
		doubtful = v.Class == sqlstore.Unknown
		tries := 1
		_, retryErr := backoff.Retry(ctx, func() (struct{}, error) {
			op = newOp(op.Kind, op.Body.task)
			op.Until = until
			op.Alone = true // what fails may be why everything fails that it is merged with
			v, err = s.once(ctx, op)
			tries++
			doubtful = doubtful || err != nil && v.Class == sqlstore.Unknown && !final(err)
			if err != nil && (!v.Class.Retry() || final(err) || tries >= lockTries && errors.Is(err, sqlstore.ErrRowLocked)) {
				return struct{}{}, backoff.Permanent(err)
			}
			return struct{}{}, err
		}, backoff.WithBackOff(pauses()), backoff.WithMaxTries(maxTries-1), backoff.WithMaxElapsedTime(left(until)))
		if retryErr != nil && err == nil {
			err = retryErr
		}
	}
	if err == nil {
		return op.Body.answer, doubtful, nil
	}
	err = s.explain(verb, key, err)
	if doubtful && !errors.Is(err, lease.ErrUnknown) {
		err = oneline.Join(lease.ErrUnknown, err) // the last try is known to have failed; an earlier one may not have
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = oneline.Join(err, ctx.Err())
	}
	return answer{}, doubtful, err
}

// once runs op. Where that fails only the task may still be read: a lane may be writing the answer.
func (s *Store) once(ctx context.Context, op *op) (sqlstore.Verdict, error) {
	if err := s.lanes.Do(ctx, op); err != nil {
		return sqlstore.Verdict{}, err
	}
	if op.Err != nil {
		return sqlstore.Judge(s.d, op.Err), op.Err
	}
	return sqlstore.Verdict{}, nil
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
