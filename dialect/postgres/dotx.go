package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlockdb/rowlock/internal/adapter"
	"github.com/rowlockdb/rowlock/internal/isnil"
	"github.com/rowlockdb/rowlock/lease"
)

// Beginner begins transactions of pgx itself: *pgxpool.Pool and *pgx.Conn do.
type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// Sections is what DoTx needs of a *rowlock.Client. O is rowlock.Option.
type Sections[O any] interface {
	DoTxIn(
		ctx context.Context, keys []string,
		begin func(ctx context.Context, opts *sql.TxOptions) (lease.Transaction, error),
		f func(ctx context.Context) error, opts ...O,
	) error
}

// DoTx is (*rowlock.Client).DoTx in a transaction of pgx itself, which on begins; with several keys
// it is DoAllTx. A pool or connection of pgx's own sends BEGIN with the fence and COMMIT with the
// release, so that a lock, one UPDATE and their commits are four round trips. Any other Beginner is
// asked to begin, which may be more than BEGIN.
//
//	err := postgres.DoTx(ctx, locks, pool, "account/7", func(ctx context.Context, tx pgx.Tx) error {
func DoTx[O any, K string | []string](
	ctx context.Context, locks Sections[O], on Beginner, keys K,
	f func(ctx context.Context, tx pgx.Tx) error, opts ...O,
) error {
	switch {
	case isnil.Value(on):
		return fmt.Errorf("%w: DoTx: the pool is nil", lease.ErrConfig)
	case f == nil:
		return fmt.Errorf("%w: DoTx of %q: the function is nil", lease.ErrConfig, adapter.KeysOf(keys))
	}
	var t *transaction
	begin := func(ctx context.Context, opts *sql.TxOptions) (lease.Transaction, error) {
		level, err := levelOf(opts.Isolation)
		if err != nil {
			return nil, err
		}
		t = new(transaction)
		with := pgx.TxOptions{IsoLevel: level}
		switch on.(type) { // BeginTx of any other type may do more than begin
		case *pgxpool.Pool, *pgxpool.Conn, *pgx.Conn:
			return &pipelined{transaction: t, on: on.(batcher), with: with}, nil
		}
		t.tx, err = on.BeginTx(ctx, with)
		return t, err
	}
	return locks.DoTxIn(ctx, adapter.KeysOf(keys), begin, func(ctx context.Context) error { return f(ctx, t.tx) }, opts...)
}

func levelOf(l sql.IsolationLevel) (pgx.TxIsoLevel, error) {
	switch l {
	case sql.LevelDefault:
		return "", nil
	case sql.LevelReadUncommitted:
		return pgx.ReadUncommitted, nil
	case sql.LevelReadCommitted:
		return pgx.ReadCommitted, nil
	case sql.LevelRepeatableRead, sql.LevelSnapshot:
		return pgx.RepeatableRead, nil
	case sql.LevelSerializable:
		return pgx.Serializable, nil
	}
	return "", fmt.Errorf("%w: DoTx: PostgreSQL has no isolation level %s", lease.ErrConfig, l)
}

// transaction is one that DoTx ends. The context of a COMMIT that ends closes pgx's connection. If
// the application has pgx cancel the statement instead, a canceled wait for a synchronous standby
// is answered with success and a warning, which pgx drops.
type transaction struct{ runner }

// Commit commits.
func (t *transaction) Commit(ctx context.Context) error {
	err := t.tx.Commit(ctx)
	if errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: %w", sql.ErrTxDone, err)
	}
	return cmp.Or(err, ctx.Err())
}

// End rolls back what was not committed.
func (t *transaction) End(ctx context.Context, _ bool) {
	if t.tx != nil {
		_ = t.tx.Rollback(ctx)
	}
}
