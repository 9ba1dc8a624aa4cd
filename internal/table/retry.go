package table

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowlockdb/rowlock/internal/lane"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// ask returns the answer of f on a lane.
func ask[A any](
	ctx context.Context, e *engine, kind lane.Kind, verb, key string,
	f func(context.Context, *sqlstore.Session) (A, error),
) (A, error) {
	answer, _, err := askTwice(ctx, e, kind, verb, key, f)
	return answer, err
}

// askTwice also reports whether an earlier try had an unknown outcome.
func askTwice[A any](
	ctx context.Context, e *engine, kind lane.Kind, verb, key string,
	f func(context.Context, *sqlstore.Session) (A, error),
) (A, bool, error) {
	var answer, none A
	_, doubtful, err := e.do(ctx, kind, verb, key,
		task{other: func(ctx context.Context, session *sqlstore.Session) (err error) {
			answer, err = f(ctx, session)
			return err
		}})
	if err != nil {
		return none, doubtful, err // the answer may still be written to
	}
	return answer, doubtful, nil
}

// maxTries bounds how often one operation is tried. Deadlocks and lost connections pass in a
// moment; callers see what does not.
const (
	maxTries  = 8
	lockTries = 5 // for a locked row: a taker is gone by then, a fence is not
)

// do runs one operation until its outcome is known, if it can be. It retries what was certainly not
// applied, and also what may have been, because every operation is idempotent per owner: a repeated
// acquire finds its own row, and confirms it. doubtful says that an earlier try had an unknown
// outcome.
func (e *engine) do(ctx context.Context, kind lane.Kind, verb, key string, t task) (
	_ answer, doubtful bool, _ error,
) {
	return e.conclude(ctx, verb, key, newOp(kind, t))
}

// beginAll gives the lanes everything at once, so that they can batch it. An op that must not run
// is nil.
func (e *engine) beginAll(ops []*op) {
	if len(ops) == 1 {
		// One op has nothing to batch with, and Do may find a lane to run it on without a
		// change of goroutines.
		return
	}
	for _, op := range ops {
		if op != nil {
			e.bound(op)    // before a lane has it
			e.lanes.Go(op) // a closed set does not begin it, and conclude says so
		}
	}
}

// conclude is do for an op that may have begun.
func (e *engine) conclude(ctx context.Context, verb, key string, op *op) (
	_ answer, doubtful bool, _ error,
) {
	until := e.bound(op)
	v, err := e.once(ctx, op)
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
			op.Alone = true // what fails may make everything in its batch fail
			v, err = e.once(ctx, op)
			tries++
			doubtful = doubtful || err != nil && v.Class == sqlstore.Unknown && !final(err)
			if err != nil && (!v.Class.Retry() || final(err) || tries >= lockTries &&
				errors.Is(err, sqlstore.ErrRowLocked)) {
				return struct{}{}, backoff.Permanent(err)
			}
			return struct{}{}, err
		}, backoff.WithBackOff(retry.Pauses()), backoff.WithMaxTries(maxTries-1),
			backoff.WithMaxElapsedTime(left(until)))
		if retryErr != nil && err == nil {
			err = retryErr
		}
	}
	if err == nil {
		return op.Body.answer, doubtful, nil
	}
	err = e.explain(verb, key, err)
	if doubtful && !errors.Is(err, lease.ErrUnknown) {
		// The last try is known to have failed; an earlier one may not have.
		err = oneline.Join(lease.ErrUnknown, err)
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = oneline.Join(err, ctx.Err())
	}
	return answer{}, doubtful, err
}

// once runs op. After an error only the task may be read, because a lane may still write the
// answer. It checks the token of a grant, however many were granted together.
func (e *engine) once(ctx context.Context, op *op) (sqlstore.Verdict, error) {
	if err := e.lanes.Do(ctx, op); err != nil {
		return sqlstore.Verdict{}, err
	}
	if op.Err == nil {
		a := &op.Body.acquired
		op.Err = sqlstore.CheckToken(a.Granted, a.Token)
	}
	if op.Err != nil {
		return sqlstore.Judge(e.d, op.Err), op.Err
	}
	return sqlstore.Verdict{}, nil
}

// final reports whether the caller has left or the store is closed, so that another try is useless.
func final(err error) bool {
	return errors.Is(err, lane.ErrClosed) || errors.Is(err, lane.ErrWithdrawn) ||
		errors.Is(err, lane.ErrOrphaned)
}

// OnLane runs f on a lane, after everything else that is pending, also for a store that is built on
// this one. f must be idempotent, because it runs again if it was not applied or the outcome is
// unknown. Errors are the store's, with the verb and the key.
func (e *engine) OnLane(
	ctx context.Context, verb, key string, f func(context.Context, *sqlstore.Session) error,
) error {
	_, _, err := e.do(ctx, lane.Acquire, verb, key, task{other: f})
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
