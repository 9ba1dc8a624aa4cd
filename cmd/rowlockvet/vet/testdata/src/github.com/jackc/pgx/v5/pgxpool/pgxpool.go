// Package pgxpool stands in for the real one.
package pgxpool

import (
	"context"

	"github.com/jackc/pgx/v5"
)

type Pool struct{}

func (*Pool) Begin(context.Context) (pgx.Tx, error)                  { return nil, nil }
func (*Pool) BeginTx(context.Context, pgx.TxOptions) (pgx.Tx, error) { return nil, nil }
