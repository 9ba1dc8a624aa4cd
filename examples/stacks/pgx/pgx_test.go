// Package pgx_test has rowlock in transactions of jackc/pgx, of a pgxpool and of a single
// connection. postgres.OpenPool gives rowlock the pool, postgres.Fence takes a pgx.Tx, and
// postgres.SQLTx makes a *sql.Tx of it for once.In and forupdate.
package pgx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/dialect/postgres"
	"github.com/rowlockdb/rowlock/examples/stacks/internal/bed"
)

func deposit(ctx context.Context, tx pgx.Tx, amount int64) error {
	_, err := tx.Exec(ctx, `UPDATE account SET balance = balance + $1 WHERE id = 'alice'`, amount)
	return err
}

func tx(tx pgx.Tx, err error) (bed.Tx, error) {
	if err != nil {
		return bed.Tx{}, err
	}
	return bed.OnPgx(tx, func(ctx context.Context, amount int64) error {
		return deposit(ctx, tx, amount)
	}), nil
}

func TestPgxpool(t *testing.T) {
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
				pool := newPool(t, d, 12, mode)
				db, err := postgres.OpenPool(pool)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = db.Close() })
				bed.Run(t, d, bed.Stack{
					Pool: db, Dialect: d.Dialect, Guesses: true,
					Begin: func(ctx context.Context) (bed.Tx, error) { return tx(pool.Begin(ctx)) },
				})
			})
		})
	}
}

func TestPgxOnAConnectionOfItsOwn(t *testing.T) {
	bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
		bed.Run(t, d, bed.Stack{
			Pool: d.DB, Dialect: d.Dialect, Guesses: true,
			Begin: func(ctx context.Context) (bed.Tx, error) {
				conn, err := pgx.Connect(ctx, d.DSN)
				if err != nil {
					return bed.Tx{}, err
				}
				t.Cleanup(func() { _ = conn.Close(context.Background()) })
				return tx(conn.Begin(ctx))
			},
		})
	})
}

// A nested transaction of pgx is a savepoint: what once.In rolls back ends there.
func TestPgxInASavepoint(t *testing.T) {
	bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
		pool := newPool(t, d, 12, pgx.QueryExecModeCacheStatement)
		bed.RunWithoutFence(t, d, bed.Stack{
			Pool: d.DB, Dialect: d.Dialect, Guesses: true,
			Begin: func(ctx context.Context) (bed.Tx, error) {
				outer, err := pool.Begin(ctx)
				if err != nil {
					return bed.Tx{}, err
				}
				inner, err := tx(outer.Begin(ctx))
				commit, rollback := inner.Commit, inner.Rollback
				inner.Commit = func() error {
					if err := commit(); err != nil {
						return err
					}
					return outer.Commit(context.Background())
				}
				inner.Rollback = func() error {
					_ = rollback()
					return outer.Rollback(context.Background())
				}
				return inner, err
			},
		})
	})
}

// A nested transaction of pgx is a savepoint: a fence in it would end with its rollback, and one in
// the outer transaction stays.
func TestPgxRefusesAFenceInASavepoint(t *testing.T) {
	bed.Each(t, []string{"postgres"}, func(t *testing.T, d bed.Database) {
		pool := newPool(t, d, 12, pgx.QueryExecModeCacheStatement)
		locks, err := rowlock.Open(d.DB, d.Dialect, nil)
		ok(t, err)
		defer locks.Close()
		l, err := locks.Lock(t.Context(), "key")
		ok(t, err)
		for _, outside := range []bool{false, true} {
			outer, err := pool.Begin(t.Context())
			ok(t, err)
			if outside {
				ok(t, postgres.Fence(t.Context(), outer, l))
			}
			inner, err := outer.Begin(t.Context())
			ok(t, err)
			err = postgres.Fence(t.Context(), inner, l)
			if outside && err != nil || !outside && !errors.Is(err, rowlock.ErrConfig) {
				t.Errorf("fenced outside: %t; in a savepoint: %v", outside, err)
			}
			ok(t, inner.Rollback(t.Context()))
			ok(t, outer.Rollback(t.Context()))
		}
		ok(t, l.Unlock(t.Context()))
	})
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newPool(t *testing.T, d bed.Database, most int32, mode pgx.QueryExecMode) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(d.DSN)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = most
	cfg.ConnConfig.DefaultQueryExecMode = mode
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
