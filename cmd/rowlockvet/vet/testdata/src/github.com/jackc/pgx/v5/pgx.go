// Package pgx stands in for the real one.
package pgx

import "context"

type (
	TxOptions struct{}
	Row       interface{ Scan(...any) error }
	Tag       struct{}
	Tx        interface {
		Begin(ctx context.Context) (Tx, error)
		Commit(ctx context.Context) error
		Rollback(ctx context.Context) error
		Exec(ctx context.Context, sql string, args ...any) (Tag, error)
		QueryRow(ctx context.Context, sql string, args ...any) Row
	}
	Conn struct{}
)

func (*Conn) Begin(context.Context) (Tx, error) { return nil, nil }

func BeginFunc(context.Context, interface {
	Begin(ctx context.Context) (Tx, error)
}, func(Tx) error,
) error {
	return nil
}
