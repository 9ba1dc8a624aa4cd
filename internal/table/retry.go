package table

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rowlockdb/rowlock/internal/conn"
	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/internal/sqlstore"
	"github.com/rowlockdb/rowlock/lease"
)

// about is which operation is asked for, and in whose turn among those that wait for a pinned
// connection.
type about struct {
	kind      conn.Kind
	verb, key string
}

// ask returns the answer of f on a pinned connection.
func ask[A any](
	ctx context.Context, e *engine, what about, f func(context.Context, *conn.Session) (A, error),
) (A, error) {
	answer, _, err := askTwice(ctx, e, what, f)
	return answer, err
}

// askTwice also reports whether an earlier try had an unknown outcome.
func askTwice[A any](
	ctx context.Context, e *engine, what about, f func(context.Context, *conn.Session) (A, error),
) (A, bool, error) {
	var answer, none A
	_, uncertain, err := e.conclude(ctx, what.verb, what.key, e.newOp(what.kind,
		task{other: func(ctx context.Context, session *conn.Session) (err error) {
			answer, err = f(ctx, session)
			return err
		}}))
	if err != nil {
		return none, uncertain, err // the answer may still be written to
	}
	return answer, uncertain, nil
}

// maxTries bounds how often one operation is tried. Deadlocks and lost connections pass in a
// moment; callers see what does not.
const (
	maxTries  = 8
	lockTries = 5 // for a locked row: a taker is gone by then, a fence is not
)

// conclude runs an op, which may have begun, until its outcome is known, if it can be. It retries
// what was certainly not applied, and also what may have been, because every operation is
// idempotent per owner: a repeated acquire finds its own row, and confirms it. uncertain says that
// an earlier try had an unknown outcome. It is all that knows of retries and of unknown outcomes of
// one operation: below it, each op is sent once.
func (e *engine) conclude(ctx context.Context, verb, key string, op *op) (
	_ answer, uncertain bool, _ error,
) {
	until := op.Until
	var pauses *backoff.ExponentialBackOff
	for tries := 1; ; tries++ {
		class := sqlstore.Unknown
		err := e.connections.Do(ctx, op)
		if err == nil {
			if err = op.Err; err == nil {
				a := &op.Body.acquired // of whatever statement, of however many together
				err = conn.CheckToken(a.Granted, a.Token)
			}
			if err == nil {
				answer := op.Body.answer
				op.Body = call{}
				used.Put(op)
				return answer, uncertain, nil
			}
			class = sqlstore.Judge(e.d, err).Class
		}
		// After an error only the task may be read, because a pinned connection may still write the
		// answer.
		uncertain = uncertain || class == sqlstore.Unknown && !final(err)
		if !class.Retry() || final(err) || tries == maxTries ||
			tries >= lockTries && errors.Is(err, sqlstore.ErrRowLocked) {
			return answer{}, uncertain, e.failure(ctx, verb, key, uncertain, err)
		}
		if tries == 1 {
			pauses = retry.Pauses()
		} else if !rest(ctx, pauses.NextBackOff(), until) {
			return answer{}, uncertain, e.failure(ctx, verb, key, uncertain, err)
		}
		op = e.newOp(op.Kind, op.Body.task)
		op.Until = until
		op.Alone = true // what fails may make everything in its batch fail
	}
}

// rest pauses between two tries. It reports false if the call ends before the next.
func rest(ctx context.Context, d time.Duration, until time.Time) bool {
	return ctx.Err() == nil && !time.Now().Add(d).After(until) && retry.Sleep(ctx, d)
}

// failure is the error of a call whose last try ended with err.
func (e *engine) failure(ctx context.Context, verb, key string, uncertain bool, err error) error {
	err = e.explain(verb, key, err)
	if uncertain && !errors.Is(err, lease.ErrUnknown) {
		// The last try is known to have failed; an earlier one may not have.
		err = oneline.Join(lease.ErrUnknown, errors.New("an earlier try had no answer"), err)
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = oneline.Join(err, ctx.Err())
	}
	return err
}

// once runs an op that asks for no lease, and does not try it again.
func (e *engine) once(ctx context.Context, op *op) error {
	if err := e.connections.Do(ctx, op); err != nil {
		return err
	}
	return op.Err
}

// final reports whether the caller has left or the store is closed, so that another try is useless.
func final(err error) bool {
	return errors.Is(err, conn.ErrClosed) || errors.Is(err, conn.ErrWithdrawn) ||
		errors.Is(err, conn.ErrOrphaned)
}

// OnPinned runs f on a pinned connection, after everything else that is pending, also for a store
// that is built on this one. f must be idempotent, because it runs again if it was not applied or
// the outcome is unknown. Errors are the store's, with the verb and the key.
func (e *engine) OnPinned(
	ctx context.Context, verb, key string, f func(context.Context, *conn.Session) error,
) error {
	_, _, err := e.conclude(ctx, verb, key, e.newOp(conn.Acquire, task{other: f}))
	return err
}

// oneAfterAnother bounds n operations that run one after another as a whole, because each alone has
// its own limit.
func (e *engine) oneAfterAnother(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	if n < 2 {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, after(e.limit))
}
