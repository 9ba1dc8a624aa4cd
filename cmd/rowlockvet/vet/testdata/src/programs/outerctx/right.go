package outerctx

import (
	"context"
	"database/sql"

	"github.com/rowlockdb/rowlock"
)

func right(ctx context.Context, db *sql.DB, locks *rowlock.Client) error {
	return locks.Do(ctx, "k", func(ctx context.Context, l *rowlock.Lock) error {
		return work(ctx)
	})
}

func asksTheCaller(ctx context.Context, locks *rowlock.Client) error {
	return locks.Do(ctx, "k", func(held context.Context, l *rowlock.Lock) error {
		if err := work(held); err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		default:
		}
		return work(context.WithoutCancel(ctx))
	})
}

func unlocks(ctx context.Context, locks *rowlock.Client) error {
	return locks.Do(ctx, "k", func(_ context.Context, l *rowlock.Lock) error { return l.Unlock(ctx) })
}

func noUse(ctx context.Context, locks *rowlock.Client) error {
	return locks.DoTx(ctx, "k", func(context.Context, *sql.Tx) error { return nil })
}

type runner struct{}

func (runner) Do(ctx context.Context, f func(context.Context) error) error { return f(ctx) }

func another(ctx context.Context, r runner) error {
	return r.Do(ctx, func(context.Context) error { return work(ctx) })
}
