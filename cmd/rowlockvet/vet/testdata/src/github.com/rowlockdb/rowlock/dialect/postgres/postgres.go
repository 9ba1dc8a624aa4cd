// Package postgres stands in for the real one.
package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/rowlockdb/rowlock"
)

type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

type Lock interface {
	FenceIn(ctx context.Context, tx any) error
}

func Fence(context.Context, pgx.Tx, Lock) error    { return nil }
func UnlockTx(context.Context, pgx.Tx, Lock) error { return nil }

func DoTx[K string | []string](
	context.Context, *rowlock.Client, Beginner, K, func(context.Context, pgx.Tx) error,
) error {
	return nil
}
