package once

import (
	"context"
	"errors"
	"time"

	"github.com/rowlockdb/rowlock/internal/oneline"
	"github.com/rowlockdb/rowlock/internal/retry"
	"github.com/rowlockdb/rowlock/lease"
)

// maxTries bounds how often the whole transaction is repeated. A call that could not begin, because
// the database was busy, tries until Config.Wait is over.
const maxTries = 5

// Do runs f in a transaction that also claims the key and keeps f's result: either all of it is
// committed or nothing. If the key was done before, Do returns its result and does not run f.
//
// A repeat that comes while the first is in flight waits for it. It then gets its result or, if the
// first was rolled back, runs f itself. After Config.Wait it gets an [*InFlightError]. f's error is
// returned as it is, after everything was rolled back; the next call runs f again. The same holds
// for f's panic.
//
// If the answer to the COMMIT is lost, Do asks whether the key was done, and reports the answer
// after a later commit was acknowledged. If it gets no answer either, the error is also
// lease.ErrUnknown.
//
// ctx is passed to f and bounds the waiting. It does not end the transaction by itself: what f has
// finished is committed. Even if the server answers nothing, Do returns within 2 s after ctx has
// ended, or after f has returned if that is later.
func (o *Once) Do(ctx context.Context, r Request, f Func) (res Result, err error) {
	if err := o.check(ctx, r, f); err != nil {
		return Result{}, err
	}
	until := time.Now().Add(o.cfg.Wait)
	mine, res, err := o.wait(ctx, r, until)
	if mine == nil {
		return res, err
	}
	defer o.lines.leave(r, mine) // even if f panics
	res, err = o.lead(ctx, r, f, until)
	if err == nil {
		mine.value, mine.done = res.Value, true
	}
	return res, err
}

// lead is for the one call of this process that asks the database for the key.
func (o *Once) lead(ctx context.Context, r Request, f Func, until time.Time) (Result, error) {
	pauses := retry.Pauses()
	for doubt, try := o.doubts.has(r), 1; ; try++ {
		a := attempt{
			o: o, req: r, row: r.row(o.cfg.Keep), f: f, wait: o.patience(until, doubt),
			peek: o.cfg.NoWait && !doubt, doubt: doubt,
		}
		res, err := a.run(ctx)
		if err == nil {
			o.doubts.resolve(r)
			return res, nil
		}
		if doubt = a.unknown || doubt && !a.settled; doubt {
			o.doubts.note(r, o.cfg.Keep)
		} else {
			o.doubts.resolve(r)
		}
		if a.claimed {
			until = time.Now().Add(o.cfg.Wait) // the next wait is for another transaction
		}
		late := time.Since(until)
		enough := try >= maxTries && (!a.busy || o.cfg.NoWait || late > 0) || late > slack
		if !a.again || enough || !retry.Sleep(ctx, pauses.NextBackOff()) {
			if a.rivals {
				err = oneline.Join(inFlight(r.Key), err)
			}
			return Result{}, o.because(ctx, doubt, err)
		}
	}
}

// patience is how long to wait for another transaction that has the key. After an unanswered COMMIT
// that may be our own, which the server has yet to find dead.
func (o *Once) patience(until time.Time, doubt bool) time.Duration {
	switch {
	case doubt:
		return o.cfg.Wait
	case o.cfg.NoWait:
		return 0
	}
	return max(time.Until(until), time.Millisecond)
}

func (o *Once) because(ctx context.Context, doubt bool, err error) error {
	if doubt {
		err = oneline.Join(lease.ErrUnknown, err)
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = oneline.Join(err, ctx.Err())
	}
	return err
}
