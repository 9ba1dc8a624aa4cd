package bed

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/forupdate"
	"github.com/rowlockdb/rowlock/once"
)

// OnPgx returns a Tx of a stack whose transaction is pgx's.
func OnPgx(tx pgx.Tx, deposit func(ctx context.Context, amount int64) error) Tx {
	background := context.Background()
	return Tx{
		Fence:    func(ctx context.Context, l *rowlock.Lock) error { return postgres.Fence(ctx, tx, l) },
		UnlockTx: func(ctx context.Context, l *rowlock.Lock) error { return postgres.UnlockTx(ctx, tx, l) },
		Once: func(ctx context.Context, o *once.Once, r once.Request, f Effect) (res once.Result, err error) {
			err = postgres.SQLTx(ctx, tx, func(as *sql.Tx) (err error) {
				res, err = o.In(ctx, as, r, func(ctx context.Context, _ *sql.Tx) ([]byte, error) { return f(ctx) })
				return err
			})
			return res, err
		},
		TryLock: func(ctx context.Context, l *forupdate.Locker, key string) error {
			return postgres.SQLTx(ctx, tx, func(as *sql.Tx) error { return l.TryLock(ctx, as, key) })
		},
		Deposit:  deposit,
		Commit:   func() error { return tx.Commit(background) },
		Rollback: func() error { return tx.Rollback(background) },
	}
}
