package unlock

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/semaphore"
)

var errBad = errors.New("bad")

func never(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "k") // want `l is not unlocked on the path to line \d+, .*: defer l.Unlock after the error is checked`
	if err != nil {
		return err
	}
	return work(l.Context())
}

func earlyReturn(ctx context.Context, locks *rowlock.Client, bad bool) error {
	l, err := locks.Lock(ctx, "k") // want `l is not unlocked on the path to line \d+`
	if err != nil {
		return err
	}
	if bad {
		return errBad
	}
	return l.Unlock(ctx)
}

func afterTx(ctx context.Context, locks *rowlock.Client, tx rowlock.Tx) error {
	l, err := locks.LockAll(ctx, []string{"a", "b"}) // want `l is not unlocked on the path to line \d+`
	if err != nil {
		return err
	}
	return l.UnlockTx(ctx, tx)
}

func loop(ctx context.Context, locks *rowlock.Client) error {
	for {
		l, err := locks.TryLock(ctx, "k") // want `l is not unlocked on the path to line \d+`
		if err != nil {
			return err
		}
		if work(ctx) != nil {
			continue
		}
		if err := l.Unlock(ctx); err != nil {
			return err
		}
	}
}

func forever(ctx context.Context, locks *rowlock.Client) {
	for {
		l, err := locks.TryLock(ctx, "k") // want `l is not unlocked on the path to line \d+`
		if err == nil && work(ctx) == nil {
			_ = l.Unlock(ctx)
		}
	}
}

func permit(ctx context.Context, sem *semaphore.Semaphore) {
	p, err := sem.Acquire(ctx, 1) // want `p is not unlocked on the path to line \d+, .*: defer p.Release`
	if err == nil {
		_ = work(p.Context())
	}
}

func literal(locks *rowlock.Client) func(context.Context) error {
	return func(ctx context.Context) error {
		l, err := locks.RLock(ctx, "k") // want `l is not unlocked on the path to line \d+`
		switch {
		case errors.Is(err, rowlock.ErrHeld):
			return nil
		case err != nil:
			return err
		}
		return l.Progress()
	}
}

func work(context.Context) error { return nil }

func wrongAfterItsTransactions(ctx context.Context, locks *rowlock.Client) error {
	l, err := locks.Lock(ctx, "k") // want `l is not unlocked on the path to line \d+`
	if err != nil {
		return err
	}
	return l.DoTx(ctx, func(ctx context.Context, tx *sql.Tx) error { return nil })
}
