// Package rowlock stands in for the real one.
package rowlock

import (
	"context"
	"database/sql"
	"errors"

	"github.com/rowlockdb/rowlock/lease"
)

type (
	Client struct{}
	Lock   struct{}
	Locks  struct{}
	Option func()
	Tx     interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}
)

var ErrHeld = errors.New("held")

type HeldError struct{}

func (*HeldError) Error() string { return "" }

func (*Client) Lock(context.Context, string, ...Option) (*Lock, error)          { return nil, nil }
func (*Client) TryLock(context.Context, string, ...Option) (*Lock, error)       { return nil, nil }
func (*Client) RLock(context.Context, string, ...Option) (*Lock, error)         { return nil, nil }
func (*Client) LockAny(context.Context, []string, ...Option) (*Lock, error)     { return nil, nil }
func (*Client) LockAll(context.Context, []string, ...Option) (*Locks, error)    { return nil, nil }
func (*Client) TryLockAll(context.Context, []string, ...Option) (*Locks, error) { return nil, nil }
func (*Client) Inspect(context.Context) ([]lease.Record, error)                 { return nil, nil }
func (*Client) Close() error                                                    { return nil }
func (*Client) Do(context.Context, string, func(context.Context, *Lock) error, ...Option) error {
	return nil
}

func (*Client) DoShared(context.Context, string, func(context.Context, *Lock) error, ...Option) error {
	return nil
}

func (*Client) DoTx(context.Context, string, func(context.Context, *sql.Tx) error, ...Option) error {
	return nil
}

func (*Client) DoAllTx(context.Context, []string, func(context.Context, *sql.Tx) error, ...Option) error {
	return nil
}

type Beginner[T any] func(ctx context.Context, opts *sql.TxOptions) (T, *sql.Tx, error)

func DoTxOn[T any, K string | []string](
	context.Context, *Client, Beginner[T], K, func(context.Context, T) error, ...Option,
) error {
	return nil
}

func (*Lock) Context() context.Context           { return nil }
func (*Lock) Key() string                        { return "" }
func (*Lock) Token() lease.Token                 { return 0 }
func (*Lock) Progress() error                    { return nil }
func (*Lock) Fence(context.Context, Tx) error    { return nil }
func (*Lock) FenceIn(context.Context, any) error { return nil }
func (*Lock) Unlock(context.Context) error       { return nil }
func (*Lock) UnlockNow(context.Context) error    { return nil }
func (*Lock) DoTx(context.Context, func(context.Context, *sql.Tx) error) error {
	return nil
}
func (*Lock) UnlockTx(context.Context, Tx) error { return nil }
func (*Locks) Context() context.Context          { return nil }
func (*Locks) Lock(string) *Lock                 { return nil }
func (*Locks) Fence(context.Context, Tx) error   { return nil }
func (*Locks) Unlock(context.Context) error      { return nil }
func (*Locks) DoTx(context.Context, func(context.Context, *sql.Tx) error) error {
	return nil
}
func (*Locks) UnlockTx(context.Context, Tx) error { return nil }
