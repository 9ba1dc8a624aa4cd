package sqlstore

import (
	"context"
	"time"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
)

// CheckOpen returns the dialect behind a public one, for caller, the name of a function. Its error
// wraps lease.ErrConfig if db or d is nil, or an interface that has a nil pointer in it, on which a
// method would panic.
func CheckOpen(caller string, db adapter.Pool, d adapter.Opener) (*Dialect, error) {
	if err := isnil.Open(caller, db, d); err != nil {
		return nil, err
	}
	return Of(d), nil
}

// Opening returns the context of caller, a function that opens something within ctx. The limit
// bounds it if ctx has no deadline of its own. The error wraps lease.ErrConfig if ctx is nil.
func Opening(ctx context.Context, caller string, limit time.Duration) (
	context.Context, context.CancelFunc, error,
) {
	if err := isnil.Context(caller, ctx); err != nil {
		return nil, nil, err
	}
	if _, ok := ctx.Deadline(); ok {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, cancel, nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, nil
}
